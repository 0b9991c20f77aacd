"""Reads requests for a HyperPod cluster as AWS's own client does, by the model of SageMaker's API. A question is
{"text": the request}."""

from __future__ import annotations

import botocore.session
import yaml
from botocore.validate import validate_parameters

OPERATION = botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateCluster")


def answer(question):
    request = yaml.safe_load(question["text"])
    validate_parameters(request, OPERATION.input_shape)
    types = OPERATION.input_shape.members["InstanceGroups"].member.members["InstanceType"].enum
    for group in request["InstanceGroups"]:
        assert group["InstanceType"] in types, group["InstanceType"]
    return {"nodes": request["InstanceGroups"][1]["InstanceCount"]}
