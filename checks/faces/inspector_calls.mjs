// Many calls in one session, by the code of the MCP Inspector's command line, which makes one a process.
//   node inspector_calls.mjs FOLDER_OF_THE_INSPECTOR TARGET... < {"tool": {"argument": "text"}}
// Prints {"tool": result}. TARGET is a command, or an address.
import { createRequire } from "node:module";
import path from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [home, ...target] = process.argv.slice(2);
const build = path.join(home, "cli", "build");
const found = createRequire(path.join(build, "index.js")).resolve("@modelcontextprotocol/sdk/client/index.js");
// The same folder holds the modules both for require and for import.
const { Client } = await import(pathToFileURL(found.replace("/dist/cjs/", "/dist/esm/")));
const { callTool, connect, disconnect } = await import(pathToFileURL(path.join(build, "client", "index.js")));
const { createTransport } = await import(pathToFileURL(path.join(build, "transport.js")));

const remote = target[0].startsWith("http");
const transport = createTransport(
  remote
    ? { transportType: "http", url: target[0] }
    : { transportType: "stdio", command: target[0], args: target.slice(1) },
);
const client = new Client({ name: "inspector-cli", version: "0.5.1" });
await connect(client, transport);
const results = {};
for (const [name, words] of Object.entries(JSON.parse(await text(process.stdin)))) {
  results[name] = await callTool(client, name, words);
}
await disconnect(transport);
console.log(JSON.stringify(results));
