//! What the server warns of in pods and templates (`pkg/api/pod/warnings.go`).

use crate::field::quote;
use crate::object::Object;
use crate::quantity;
use crate::validate::{At, format};

/// Labels of nodes that have a new name.
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];
/// Volumes whose plugins are gone or going.
const OLD_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// A new pod.
pub(super) fn of_pod(pod: &Object, old: Option<&Object>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let messages = format::dns_label(pod.name());
    if !messages.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            messages.join(" ")
        ));
    }
    warnings.extend(of(&At::top(pod, "metadata"), &At::top(pod, "spec")));
    warnings
}

/// A template.
pub(super) fn of_template(template: &At<'_>) -> Vec<String> {
    of(&template.field("metadata"), &template.field("spec"))
}

fn of(metadata: &At<'_>, spec: &At<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    of_places(spec, &mut warnings);
    for (key, why) in OLD_ANNOTATIONS {
        let annotations = metadata.field("annotations");
        if annotations.has(key) {
            warnings.push(format!("{}: {why}", annotations.path.key(key)));
        }
    }
    for volume in spec.field("volumes").items() {
        for (source, shown, why) in OLD_VOLUMES.iter().filter(|(source, _, _)| volume.has(source)) {
            warnings.push(format!("{}: {why}", volume.field(source).path.to_string().replace(source, shown)));
        }
    }
    of_duplicates(&spec.field("hostAliases"), "ip", &mut warnings);
    of_duplicates(&spec.field("imagePullSecrets"), "name", &mut warnings);
    for secret in spec.field("imagePullSecrets").items().filter(|secret| secret.text_of("name").is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", secret.field("name").path));
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            of_container(&container, &mut warnings);
        }
    }
    of_ports(spec, &mut warnings);
    let grace = spec.field("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!("{}: must be >= 0; negative values are invalid and will be treated as 1", grace.path));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.below(&["affinity", kind]);
        for term in affinity.field("requiredDuringSchedulingIgnoredDuringExecution").items() {
            warnings.extend(null_selector(&term));
        }
        for term in affinity.field("preferredDuringSchedulingIgnoredDuringExecution").items() {
            warnings.extend(null_selector(&term.field("podAffinityTerm")));
        }
    }
    warnings
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// Labels of nodes that selectors, affinities and constraints name.
fn of_places(spec: &At<'_>, warnings: &mut Vec<String>) {
    for (key, entry) in spec.field("nodeSelector").entries() {
        warnings.extend(old_label(key).map(|why| format!("{}: {why}", entry.path)));
    }
    let affinity = spec.below(&["affinity", "nodeAffinity"]);
    let required = affinity.below(&["requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"]);
    for term in required.items() {
        of_term(&term, false, warnings);
    }
    for term in affinity.field("preferredDuringSchedulingIgnoredDuringExecution").items() {
        of_term(&term.field("preference"), true, warnings);
    }
    for constraint in spec.field("topologySpreadConstraints").items() {
        let key = constraint.field("topologyKey");
        warnings.extend(old_label(key.text()).map(|why| format!("{}: {} is {why}", key.path, key.text())));
        warnings.extend(null_selector(&constraint));
    }
}

fn of_term(term: &At<'_>, check_values: bool, warnings: &mut Vec<String>) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        warnings.extend(old_label(key.text()).map(|why| format!("{}: {} is {why}", key.path, key.text())));
        for value in expression.field("values").items().filter(|_| check_values) {
            for message in format::label_value(value.text()) {
                warnings.push(format!("{}: {} is invalid, {message}", value.path, value.text()));
            }
        }
    }
}

fn of_duplicates(list: &At<'_>, field: &str, warnings: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for item in list.items() {
        let value = item.field(field);
        if seen.contains(&value.text()) {
            warnings.push(format!("{}: duplicate {field} {}", value.path, quote(value.text())));
        }
        seen.push(value.text());
    }
}

fn null_selector(term: &At<'_>) -> Option<String> {
    let selector = term.field("labelSelector");
    (!selector.is_set()).then(|| format!("{}: a null labelSelector results in matching no pod", selector.path))
}

fn of_container(container: &At<'_>, warnings: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let amount = container.below(&["resources", list]);
            let amount = At::new(amount.field(resource).value, amount.path.key(resource));
            if quantity::nano_units(amount.text()).is_some_and(|nano| nano % 1_000_000_000 != 0) {
                warnings.push(format!(
                    "{}: fractional byte value {} is invalid, must be an integer",
                    amount.path,
                    quote(amount.text())
                ));
            }
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for variable in container.field("env").items() {
        let (name, value) = (variable.text_of("name"), variable.text_of("value"));
        let reference = format!("$({name})");
        let hides = variable.has("valueFrom") || value == reference || !value.contains(&reference);
        if names.contains(&name) && hides {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                variable.path,
                quote(name)
            ));
        }
        names.push(name);
    }
}

fn of_ports(spec: &At<'_>, warnings: &mut Vec<String>) {
    let ports: Vec<At<'_>> = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| spec.field(list).items().collect::<Vec<_>>())
        .flat_map(|container| container.field("ports").items().collect::<Vec<_>>())
        .collect();
    let number = |port: &At<'_>, field: &str| port.field(field).number().unwrap_or_default();
    for (index, port) in ports.iter().enumerate() {
        for other in &ports[..index] {
            let same_port = number(port, "containerPort") == number(other, "containerPort")
                && port.text_of("protocol") == other.text_of("protocol");
            if !same_port {
                continue;
            }
            let (here, there) = (number(port, "hostPort"), number(other, "hostPort"));
            let (this, that) = (port.text_of("hostIP"), other.text_of("hostIP"));
            let what = if this == that && here == there {
                "duplicate"
            } else if here == 0 || there == 0 {
                "overlapping"
            } else if here == there && this.is_empty() != that.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{}: {what} port definition with {}", port.path, other.path));
        }
    }
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| !port.text_of("name").is_empty()) {
        let name = port.text_of("name");
        if let Some(first) = ports[..index].iter().find(|other| other.text_of("name") == name) {
            warnings.push(format!(
                "{}: duplicate port name {} with {}, services and probes that select ports by name will use {}",
                port.path,
                quote(name),
                first.path,
                first.path
            ));
        }
    }
}
