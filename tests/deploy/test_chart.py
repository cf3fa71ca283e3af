"""The Helm chart, rendered by Helm: Kubernetes' schemas accept it, and it refuses invalid settings with the fix."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from tests.deploy.tools import ALERTS, CHART, DASHBOARD, helm, template
from tests.running import ROOT

REQUIRED = ("image.repository=nightjar", "existingSecret=nightjar", "config=@app.yaml")
SQLITE = ("database=sqlite", "replicas=1")
ALL = (
    "ingress.enabled=true",
    "ingress.host=ci.example.org",
    "ingress.className=nginx",
    "ingress.tlsSecret=ci-example-org",
    "serviceMonitor.enabled=true",
    "serviceMonitor.labels.release=prometheus",
    "prometheusRule.enabled=true",
    "grafanaDashboard.enabled=true",
    "serviceAccountName=nightjar",
    "image.pullSecrets={registry}",
    "podAnnotations.team=compiler",
    "nodeSelector.disk=ssd",
    "worker.replicas=2",
    "extraEnv[0].name=HTTPS_PROXY",
    "extraEnv[0].value=http://proxy.example.org:3128",
    "extraVolumes[0].name=ca",
    "extraVolumes[0].secret.secretName=ca",
    "extraVolumeMounts[0].name=ca",
    "extraVolumeMounts[0].mountPath=/etc/ca",
    "labels.team=compiler",
    "podLabels.mesh=on",
    "priorityClassName=high",
    "existingConfigFolder=nightjar-app-d",
)
KUBERNETES = ("1.25", "1.33")
"""The oldest version that the chart allows, and a newer one."""
CUSTOM = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, whose schemas no package has."""


def rendered(*settings: str) -> dict[str, dict[str, Any]]:
    """Return the chart's resources by kind and name."""
    done = template(*REQUIRED, *settings)
    assert done.returncode == 0, done.stderr
    made = [manifest for manifest in YAML(typ="safe").load_all(done.stdout) if manifest]
    return {f"{manifest['kind']}/{manifest['metadata']['name']}": manifest for manifest in made}


def pod(*settings: str) -> dict[str, Any]:
    spec: dict[str, Any] = rendered(*settings)["Deployment/nightjar"]["spec"]["template"]["spec"]
    return spec


def test_a_folder_of_settings_is_mounted_beside_app_yaml() -> None:
    spec = pod("existingConfigFolder=nightjar-app-d")
    (container,) = spec["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert mounts["/etc/nightjar/app.yaml"] == "config"
    assert volumes[mounts["/etc/nightjar/app.d"]]["configMap"] == {"name": "nightjar-app-d"}
    assert "/etc/nightjar/app.d" not in {mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]}


def test_helm_finds_no_fault() -> None:
    options = [part for setting in REQUIRED[:2] for part in ("--set", setting)]
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, *options, "--set-file", "config=app.yaml")


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("settings", [(), ALL, SQLITE], ids=["default", "all", "sqlite"])
def test_kubernetes_accepts_everything(settings: tuple[str, ...], version: str) -> None:
    for manifest in rendered(*settings).values():
        if manifest["kind"] not in CUSTOM:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_an_unknown_field_of_kubernetes_is_detected() -> None:
    deployment = rendered()["Deployment/nightjar"]
    deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES[-1], strict=True)


def test_the_chart_renders_the_right_parts_by_default_and_with_all_options() -> None:
    few = {"Deployment/nightjar", "Service/nightjar", "Service/nightjar-metrics", "ConfigMap/nightjar"}
    few |= {"PodDisruptionBudget/nightjar", "NetworkPolicy/nightjar"}
    assert set(rendered()) == few
    optional = {
        "Ingress/nightjar",
        "ServiceMonitor/nightjar",
        "PrometheusRule/nightjar",
        "ConfigMap/nightjar-dashboard",
        "Deployment/nightjar-worker",
        "Service/nightjar-worker-metrics",
    }
    assert set(rendered(*ALL)) == few | optional
    # A disruption budget for one replica would block every drain of a node.
    assert set(rendered(*SQLITE)) == few - {"PodDisruptionBudget/nightjar"} | {"PersistentVolumeClaim/nightjar"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((*REQUIRED, "database=sqlite"), "replicas is 2, and database is sqlite, which serves one process only. Set "),
        ((*REQUIRED, "existingSecret="), "existingSecret is not set. Create a Secret with GITHUB_APP_ID"),
        ((*REQUIRED, "image.repository="), "image.repository is not set. Build the image"),
        (REQUIRED[:2], "There is no app.yaml. Add --set-file config=app.yaml"),
        ((*REQUIRED, "existingConfigMap=mine"), "config and existingConfigMap are both set. Keep one of them."),
        ((*REQUIRED, "ingress.enabled=true"), "ingress.host is not set. Set it to the host name"),
        ((*REQUIRED, "replica=3"), "additional properties 'replica' not allowed"),
        ((*REQUIRED, "database=mysql"), "/database"),
        ((*REQUIRED, "image.digest=sha256:12"), "/image/digest"),
    ],
)
def test_invalid_settings_are_refused_with_the_fix(settings: tuple[str, ...], words: str) -> None:
    done = template(*settings)
    assert done.returncode == 1
    assert words in done.stderr


def test_the_database_comes_from_the_secret_and_must_exist() -> None:
    """Without the key, the pod does not start: otherwise each pod would have its own SQLite file."""
    [database] = pod()["containers"][0]["env"]
    assert database == {
        "name": "DATABASE_URL",
        "valueFrom": {"secretKeyRef": {"name": "nightjar", "key": "DATABASE_URL"}},
    }
    deployment = rendered(*SQLITE)["Deployment/nightjar"]["spec"]
    assert deployment["strategy"] == {"type": "Recreate"}
    assert pod(*SQLITE)["containers"][0]["env"][0]["value"] == "sqlite:////var/lib/nightjar/nightjar.db"
    volumes = {volume["name"]: volume for volume in pod(*SQLITE)["volumes"]}
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == "nightjar"


def test_pods_run_without_root_and_write_only_to_their_volumes() -> None:
    spec = pod()
    container = spec["containers"][0]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/tmp", "/var/lib/nightjar"}
    assert f"USER {spec['securityContext']['runAsUser']}" in (ROOT / "Dockerfile").read_text()


def test_the_ingress_opens_only_what_people_and_github_need() -> None:
    [rule] = rendered(*ALL)["Ingress/nightjar"]["spec"]["rules"]
    assert {path["path"] for path in rule["http"]["paths"]} == {
        "/webhook",
        "/api/v1",
        "/",
        "/r",
        "/static",
        "/help",
        "/labs",
        "/search",
        "/api",
        "/favicon.ico",
        "/login",
        "/logout",
        "/operate",
    }


def test_metrics_are_reachable_only_from_the_cluster() -> None:
    policy = rendered()["NetworkPolicy/nightjar"]["spec"]
    web, metrics = policy["ingress"]
    assert (web["ports"][0]["port"], "from" in web) == ("http", False)
    assert (metrics["ports"][0]["port"], metrics["from"]) == ("metrics", [{"namespaceSelector": {}}])
    assert len(rendered("networkPolicy.metricsFrom=null")["NetworkPolicy/nightjar"]["spec"]["ingress"]) == 1


def test_rules_dashboard_and_app_yaml_arrive_unchanged() -> None:
    made = rendered(*ALL)
    assert made["PrometheusRule/nightjar"]["spec"] == YAML(typ="safe").load(ALERTS)
    assert json.loads(made["ConfigMap/nightjar-dashboard"]["data"]["nightjar.json"]) == json.loads(
        DASHBOARD.read_text()
    )
    assert made["ConfigMap/nightjar"]["data"]["app.yaml"] == (ROOT / "app.yaml").read_text().strip() + "\n"
    monitor = made["ServiceMonitor/nightjar"]["spec"]
    labels = made["Service/nightjar-metrics"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["endpoints"][0]["port"] == made["Service/nightjar-metrics"]["spec"]["ports"][0]["name"]


def test_the_chart_has_the_version_of_the_bot() -> None:
    chart = YAML(typ="safe").load(CHART / "Chart.yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_workers_run_jobs_and_get_no_webhooks() -> None:
    resources = rendered("worker.replicas=2")
    worker = resources["Deployment/nightjar-worker"]["spec"]
    container = worker["template"]["spec"]["containers"][0]
    assert container["args"][0] == "worker"
    assert [port["name"] for port in container["ports"]] == ["metrics"]
    labels = worker["template"]["metadata"]["labels"].items()
    assert worker["replicas"] == 2
    assert worker["selector"]["matchLabels"].items() <= labels
    selects = {
        name: resources[f"Service/{name}"]["spec"]["selector"].items() <= labels
        for name in ("nightjar", "nightjar-metrics", "nightjar-worker-metrics")
    }
    assert selects == {"nightjar": False, "nightjar-metrics": False, "nightjar-worker-metrics": True}
    policy = resources["NetworkPolicy/nightjar"]["spec"]["podSelector"]
    assert dict(labels)["app.kubernetes.io/name"] in policy["matchExpressions"][0]["values"]
    done = template(*REQUIRED, *SQLITE, "worker.replicas=1")
    assert "worker.replicas is set, and database is sqlite" in done.stderr


def test_everything_has_the_labels_and_pods_have_what_is_added() -> None:
    resources = rendered(*ALL)
    assert all(made["metadata"]["labels"]["team"] == "compiler" for made in resources.values())
    for name in ("nightjar", "nightjar-worker"):
        template_of_pods = resources[f"Deployment/{name}"]["spec"]["template"]
        spec = template_of_pods["spec"]
        assert template_of_pods["metadata"]["labels"]["mesh"] == "on"
        assert spec["priorityClassName"] == "high"
        assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.org:3128"} in spec["containers"][0]["env"]
        assert {"name": "ca", "secret": {"secretName": "ca"}} in spec["volumes"]
        assert {"name": "ca", "mountPath": "/etc/ca"} in spec["containers"][0]["volumeMounts"]
