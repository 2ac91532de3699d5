//! A pod like those of a Deployment: one of its containers, with what it needs to run, and nothing else.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Map, Value, json};

/// The Deployment that a pod is borrowed from, and what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Borrowed {
    /// The Deployment, in the namespace of the release.
    pub deployment: String,
    /// The container; none if the Deployment has only one.
    pub container: Option<String>,
    /// The image instead of the container's: before a deploy the Deployment has that of the previous version.
    pub image: Option<String>,
    /// The command instead of the container's.
    pub command: Option<Vec<String>>,
    /// The arguments instead of the container's.
    pub args: Option<Vec<String>>,
}

/// What is taken of a pod: its account, its placement, and how it is secured.
const OF_PODS: [&str; 18] = [
    "serviceAccountName",
    "automountServiceAccountToken",
    "imagePullSecrets",
    "securityContext",
    "nodeSelector",
    "affinity",
    "tolerations",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "hostAliases",
    "hostNetwork",
    "dnsPolicy",
    "dnsConfig",
    "hostUsers",
    "os",
    "shareProcessNamespace",
    "subdomain",
];
/// What is taken of a container: no probes, no lifecycle, no ports.
const OF_CONTAINERS: [&str; 12] = [
    "name",
    "image",
    "imagePullPolicy",
    "command",
    "args",
    "workingDir",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
    "volumeDevices",
    "securityContext",
];

impl Borrowed {
    /// The template, made of what the Deployment is now.
    pub(crate) fn template(&self, deployment: &Deployment) -> Result<Value, String> {
        let whole = serde_json::to_value(deployment).unwrap_or_default();
        let pod = &whole["spec"]["template"]["spec"];
        let containers: Vec<&Value> = pod["containers"].as_array().into_iter().flatten().collect();
        let names = || containers.iter().filter_map(|one| one["name"].as_str()).collect::<Vec<_>>().join("`, `");
        let found = match &self.container {
            Some(name) => containers.iter().find(|one| one["name"] == **name),
            None if containers.len() == 1 => containers.first(),
            None => None,
        };
        let Some(found) = found else {
            return Err(match &self.container {
                Some(name) => {
                    format!("Deployment `{}` has no container `{name}`; it has `{}`", self.deployment, names())
                }
                None => {
                    format!("Deployment `{}` has more than one container: name one of `{}`", self.deployment, names())
                }
            });
        };
        let mut container = pick(found, &OF_CONTAINERS);
        if let Some(image) = &self.image {
            container.insert("image".to_owned(), json!(image));
        }
        for (key, instead) in [("command", &self.command), ("args", &self.args)] {
            if let Some(words) = instead {
                container.insert(key.to_owned(), json!(words));
            }
        }
        // Arguments of the original make no sense to another program.
        if self.command.is_some() && self.args.is_none() {
            container.remove("args");
        }
        let mounted: Vec<&Value> = ["volumeMounts", "volumeDevices"]
            .iter()
            .flat_map(|list| found[*list].as_array().into_iter().flatten())
            .map(|mount| &mount["name"])
            .collect();
        let volumes: Vec<&Value> = pod["volumes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|volume| mounted.contains(&&volume["name"]))
            .collect();
        let mut spec = pick(pod, &OF_PODS);
        if !volumes.is_empty() {
            spec.insert("volumes".to_owned(), json!(volumes));
        }
        spec.insert("containers".to_owned(), json!([container]));
        Ok(json!({"spec": spec}))
    }
}

fn pick(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone())));
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": "api"}, "spec": {
            "selector": {"matchLabels": {"app": "api"}},
            "template": {
                "metadata": {"labels": {"app": "api"}},
                "spec": {
                    "serviceAccountName": "api", "nodeSelector": {"disk": "fast"}, "terminationGracePeriodSeconds": 99,
                    "schedulingGates": [{"name": "g"}],
                    "initContainers": [{"name": "wait", "image": "w"}],
                    "containers": [
                        {"name": "api", "image": "shop/api:1", "args": ["serve"], "ports": [{"containerPort": 80}],
                         "readinessProbe": {"tcpSocket": {"port": 80}}, "env": [{"name": "A", "value": "1"}],
                         "volumeMounts": [{"name": "files", "mountPath": "/files"}]},
                        {"name": "proxy", "image": "p"},
                    ],
                    "volumes": [{"name": "files", "configMap": {"name": "files"}}, {"name": "other", "emptyDir": {}}],
                },
            },
        }}))
        .unwrap()
    }

    fn borrow(container: Option<&str>) -> Borrowed {
        Borrowed {
            deployment: "api".to_owned(),
            container: container.map(str::to_owned),
            image: None,
            command: None,
            args: Some(vec!["migrate".to_owned()]),
        }
    }

    #[test]
    fn one_container_comes_with_what_it_needs_and_nothing_else() {
        let template = borrow(Some("api")).template(&deployment()).unwrap();
        let expected = json!({"spec": {
            "serviceAccountName": "api", "nodeSelector": {"disk": "fast"},
            "containers": [{"name": "api", "image": "shop/api:1", "args": ["migrate"],
                "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "files", "mountPath": "/files"}]}],
            "volumes": [{"name": "files", "configMap": {"name": "files"}}],
        }});
        assert_eq!(template, expected);
    }

    #[test]
    fn a_container_that_is_not_there_or_not_named_is_told() {
        let told = |container| borrow(container).template(&deployment()).unwrap_err();
        assert_eq!(told(Some("web")), "Deployment `api` has no container `web`; it has `api`, `proxy`");
        assert_eq!(told(None), "Deployment `api` has more than one container: name one of `api`, `proxy`");
    }

    #[test]
    fn an_image_of_its_own_replaces_the_containers() {
        let own = Borrowed { image: Some("shop/api:2".to_owned()), ..borrow(Some("api")) };
        let template = own.template(&deployment()).unwrap();
        assert_eq!(template["spec"]["containers"][0]["image"], "shop/api:2");
        assert_eq!(template["spec"]["containers"][0]["env"][0]["name"], "A");
    }

    #[test]
    fn another_program_does_not_get_the_arguments() {
        let other = Borrowed { command: Some(vec!["sh".to_owned()]), args: None, ..borrow(Some("api")) };
        let template = other.template(&deployment()).unwrap();
        assert_eq!(template["spec"]["containers"][0].get("args"), None);
    }
}
