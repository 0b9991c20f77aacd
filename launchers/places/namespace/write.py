"""What an administrator sets up for a run in Kubernetes: a namespace with a quota of its devices, the rights of whoever
starts it, pods without rights of their own, and a network that lets in only pods of the namespace."""

from __future__ import annotations

from launchers.devices import word_of
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.launch.placeholders import NAMESPACE
from launchers.pieces import File, Piece
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "namespace.yaml"
_RIGHTS = "rbac.authorization.k8s.io"
# What the kinds that we write are called, by group, for those who start them.
_KINDS = {
    "": ["configmaps", "persistentvolumeclaims", "services"],
    "apps": ["deployments"],
    "batch": ["jobs"],
    "batch.volcano.sh": ["jobs"],
    "jobset.x-k8s.io": ["jobsets"],
    "kubeflow.org": ["pytorchjobs"],
    "trainer.kubeflow.org": ["trainjobs", "trainingruntimes"],
    "leaderworkerset.x-k8s.io": ["leaderworkersets"],
    "ray.io": ["rayjobs"],
    "serving.kserve.io": ["inferenceservices", "llminferenceservices"],
    "nvidia.com": ["dynamographdeployments"],
}
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]


def render(launch: Launch) -> Piece:
    """The objects and what only an administrator knows. Raises PlanError where Kubernetes has no such devices."""
    name = launch.site.namespace or NAMESPACE
    command = f"kubectl apply -f {PATH}"
    lines = [f"# {line}" for line in scheduler_heading(launch, command)]
    lines.append("# By an administrator, once; what runs in it is started by members of the group below.")
    for document in _documents(launch, name):
        lines += ["---", *tree(document)]
    needs = [
        f"{PATH}: the group whose members start runs (SET_ME_GROUP)",
        f"{PATH}: secrets hf-token (key token) and, of a server, api-key (key key): kubectl create secret generic",
    ]
    if launch.site.namespace is None:
        needs.insert(0, f"{PATH}: the namespace ({NAMESPACE}), in the other files too")
    return Piece((File(PATH, "namespace", "\n".join([*lines, ""])),), tuple(needs))


def _documents(launch: Launch, name: str) -> list[dict[str, Tree]]:
    def inside(kind: str, version: str, called: str, **fields: Tree) -> dict[str, Tree]:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": called, "namespace": name}, **fields}

    # RDMA needs a capability that the baseline level does not allow (Kubernetes, Pod Security Standards).
    level = "privileged" if launch.nodes > 1 else "baseline"
    labels: dict[str, Tree] = {"pod-security.kubernetes.io/enforce": level}
    space: dict[str, Tree] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    documents = [space]
    if word := word_of(launch, "kubernetes"):
        quota: dict[str, Tree] = {f"requests.{word}": str(launch.devices)}
        documents.append(inside("ResourceQuota", "v1", "devices", spec={"hard": quota}))
    rules: list[Tree] = [{"apiGroups": [group], "resources": kinds, "verbs": _ALL} for group, kinds in _KINDS.items()]
    rules.append({"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]})
    group = {"kind": "Group", "name": "SET_ME_GROUP", "apiGroup": _RIGHTS}
    role = {"kind": "Role", "name": "runs", "apiGroup": _RIGHTS}
    return [
        *documents,
        # Pods run under this account: none of ours asks anything of Kubernetes.
        inside("ServiceAccount", "v1", "default", automountServiceAccountToken=False),
        inside("Role", f"{_RIGHTS}/v1", "runs", rules=rules),
        inside("RoleBinding", f"{_RIGHTS}/v1", "runs", subjects=[group], roleRef=role),
        inside("NetworkPolicy", "networking.k8s.io/v1", "own-pods", spec=_network(launch)),
    ]


def _network(launch: Launch) -> dict[str, Tree]:
    """Pods of a run talk with each other; who asks a server from elsewhere is named."""
    allowed: list[Tree] = [{"podSelector": dict[str, Tree]()}]
    if launch.kind == "inference":
        asks = "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SET_ME}}}"
        allowed.append(YamlNote(f"{asks}  # who may ask the server from another namespace"))
    return {"podSelector": dict[str, Tree](), "policyTypes": ["Ingress"], "ingress": [{"from": allowed}]}
