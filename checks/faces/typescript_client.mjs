// One conversation of the official TypeScript client, every question answered with yes.
//   node typescript_client.mjs FOLDER_OF_THE_CLIENT ERA TARGET... < {"tool": {"argument": "value"}}
// ERA is a version of the protocol, TARGET a command, or an address; the tools are called at the end. Prints what was
// answered, as JSON.
import path from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [home, era, ...target] = process.argv.slice(2);
const dist = (name) => import(pathToFileURL(path.join(home, "dist", name)));
const { Client, StreamableHTTPClientTransport } = await dist("index.mjs");
const { StdioClientTransport } = await dist("stdio.mjs");

const [program, ...words] = target;
const token = process.env.SHARDWISE_TOKEN;
const transport = program.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(program), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new StdioClientTransport({ command: program, args: words, env: process.env });
const mode = era === "2026-07-28" ? { pin: era } : "legacy";
const client = new Client(
  { name: "check", version: "1" },
  { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } },
);
const asked = [];
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { approve: true } };
});
await client.connect(transport);
const run = { model: "gpt2", accelerator: "h100", count: 8 };
const call = (name, given) => client.callTool({ name, arguments: given });
const fit = await call("check_fit", run);
// Whole answers, of servers for programs, have no more to read.
const { details: uri } = fit.structuredContent;
const details = uri ? (await client.readResource({ uri })).contents[0].mimeType : "";
const written = await call("write_configs", { ...run, folder: "runs/a" });
const called = {};
for (const [name, given] of Object.entries(JSON.parse(await text(process.stdin)))) {
  called[name] = await call(name, given);
}
console.log(
  JSON.stringify({
    era: client.getNegotiatedProtocolVersion(),
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    templates: (await client.listResourceTemplates()).resourceTemplates.length,
    prompts: (await client.listPrompts()).prompts.length,
    fits: fit.structuredContent.fits,
    details,
    wrong: await call("check_fit", { ...run, accelerator: "h900" }),
    written: written.structuredContent,
    asked,
    called,
  }),
);
await client.close();
