"""Reads cluster configurations with AWS ParallelCluster's own schema. A question is {"text": the configuration}."""

from __future__ import annotations

import os

import yaml

# Nothing is asked of AWS: these only keep its client from looking for them.
os.environ |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
from pcluster.schemas.cluster_schema import ClusterSchema


def answer(question):
    text = question["text"].replace("SET_ME_REGION", "us-east-1").replace("SET_ME_SUBNET", "subnet-0123456789abcdef0")
    cluster = ClusterSchema(cluster_name="x").load(yaml.safe_load(text))
    (nodes,) = cluster.scheduling.queues[0].compute_resources
    return {"nodes": nodes.max_count, "instances": list(nodes.instance_types), "efa": nodes.efa.enabled}
