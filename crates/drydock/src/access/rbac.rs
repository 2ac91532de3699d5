//! Role-based access control: what the roles that are bound to a user allow.

use super::User;
use crate::kinds::Storage;
use crate::object::Object;
use crate::store::{Key, Store};
use serde_json::Value;

/// What somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attributes<'a> {
    Resource {
        verb: &'a str,
        group: &'a str,
        /// With the subresource: `pods/log`.
        resource: &'a str,
        /// Empty for the whole cluster.
        namespace: &'a str,
        name: &'a str,
    },
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

impl Attributes<'_> {
    /// Why it is refused, in the server's words.
    pub(crate) fn refusal(&self, user: &User) -> String {
        let user = crate::field::quote(&user.name);
        match self {
            Self::Resource { verb, group, resource, namespace, .. } => {
                let place = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                format!("User {user} cannot {verb} resource {resource:?} in API group {group:?} {place}")
            }
            Self::Path { verb, path } => format!("User {user} cannot {verb} path {path:?}"),
        }
    }
}

/// Whether a user may do something; if so, by which binding.
pub(crate) fn allows(store: &Store, user: &User, attributes: &Attributes<'_>) -> Option<String> {
    if user.is_master() {
        return Some(String::new());
    }
    let namespace = match attributes {
        Attributes::Resource { namespace, .. } => *namespace,
        Attributes::Path { .. } => "",
    };
    bindings(store, namespace)
        .filter(|binding| binds(binding, user))
        .find(|binding| rules(store, binding).iter().any(|rule| rule_allows(rule, attributes)))
        .map(|binding| {
            let role = (binding.text(&["roleRef", "kind"]), binding.text(&["roleRef", "name"]));
            format!(
                "RBAC: allowed by {} \"{}\" of {} \"{}\" to {}",
                binding.kind(),
                full_name(binding),
                role.0,
                role.1,
                describe(user)
            )
        })
}

fn full_name(binding: &Object) -> String {
    if binding.namespace().is_empty() {
        binding.name().to_owned()
    } else {
        format!("{}/{}", binding.name(), binding.namespace())
    }
}

fn describe(user: &User) -> String {
    match user.name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => format!("ServiceAccount \"{name}/{namespace}\""),
        None => format!("User {:?}", user.name),
    }
}

/// All rules that are bound to a user, in a namespace or for the whole cluster.
pub(crate) fn rules_of(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    if user.is_master() {
        return vec![
            serde_json::json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            serde_json::json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
        ];
    }
    bindings(store, namespace)
        .filter(|binding| binds(binding, user))
        .flat_map(|binding| rules(store, binding).to_vec())
        .collect()
}

fn storage(plural: &str) -> Storage {
    Storage::new("rbac.authorization.k8s.io", plural)
}

fn bindings<'a>(store: &'a Store, namespace: &'a str) -> impl Iterator<Item = &'a Object> {
    let everywhere = store.list(&storage("clusterrolebindings"), None);
    let here = store.list(&storage("rolebindings"), Some(namespace)).filter(move |_| !namespace.is_empty());
    everywhere.chain(here).map(AsRef::as_ref)
}

fn binds(binding: &Object, user: &User) -> bool {
    binding.list(&["subjects"]).iter().any(|subject| {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "User" => text("name") == user.name,
            "Group" => user.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => {
                let namespace = if text("namespace").is_empty() { binding.namespace() } else { text("namespace") };
                user.name == format!("system:serviceaccount:{namespace}:{}", text("name"))
            }
            _ => false,
        }
    })
}

fn rules<'a>(store: &'a Store, binding: &Object) -> &'a [Value] {
    let name = binding.text(&["roleRef", "name"]);
    let (storage, key) = match binding.text(&["roleRef", "kind"]) {
        "ClusterRole" => (storage("clusterroles"), Key::new("", name)),
        _ => (storage("roles"), Key::new(binding.namespace(), name)),
    };
    store.get(&storage, &key).map_or(&[], |role| role.list(&["rules"]))
}

fn rule_allows(rule: &Value, attributes: &Attributes<'_>) -> bool {
    let list = |field: &str| rule.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let has = |field: &str, wanted: &str| list(field).iter().any(|value| value == "*" || value == wanted);
    match attributes {
        Attributes::Resource { verb, group, resource, name, .. } => {
            let by_subresource = || {
                resource.split_once('/').is_some_and(|(_, subresource)| {
                    list("resources").iter().any(|value| value.as_str() == Some(&format!("*/{subresource}")))
                })
            };
            let names = list("resourceNames");
            has("verbs", verb)
                && has("apiGroups", group)
                && (has("resources", resource) || by_subresource())
                && (names.is_empty() || names.iter().any(|known| known == name))
        }
        Attributes::Path { verb, path } => {
            has("verbs", verb)
                && list("nonResourceURLs").iter().filter_map(Value::as_str).any(|pattern| {
                    pattern.strip_suffix('*').map_or(pattern == *path, |prefix| path.starts_with(prefix))
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn store() -> Store {
        let mut store = Store::new(10);
        let mut put = |plural: &str, object: Value| {
            store.put(&storage(plural), Object::from_value(object).unwrap());
        };
        put(
            "roles",
            json!({"kind": "Role", "metadata": {"name": "r", "namespace": "a"}, "rules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/log"]},
            {"verbs": ["delete"], "apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": ["x"]}]}),
        );
        put(
            "rolebindings",
            json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "a"},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "sa"}]}),
        );
        put(
            "clusterroles",
            json!({"kind": "ClusterRole", "metadata": {"name": "c"}, "rules": [
            {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}]}),
        );
        put(
            "clusterrolebindings",
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "d"},
            "roleRef": {"kind": "ClusterRole", "name": "c"}, "subjects": [{"kind": "Group", "name": "system:authenticated"}]}),
        );
        store
    }

    #[test]
    fn roles_allow_what_they_say_and_nothing_else() {
        let store = store();
        let account = User::service_account("a", "sa");
        let may = |verb, group, resource, namespace, name| {
            allows(&store, &account, &Attributes::Resource { verb, group, resource, namespace, name }).is_some()
        };
        assert!(may("get", "", "pods", "a", "p"));
        assert!(may("get", "", "pods/log", "a", "p"));
        assert!(!may("get", "", "pods/status", "a", "p"));
        assert!(!may("get", "", "pods", "b", "p"));
        assert!(!may("get", "", "pods", "", ""));
        assert!(may("delete", "batch", "jobs", "a", "x"));
        assert!(!may("delete", "batch", "jobs", "a", "y"));
        let path = |path| allows(&store, &account, &Attributes::Path { verb: "get", path }).is_some();
        assert!(path("/healthz") && path("/apis/batch") && !path("/metrics"));
        assert!(allows(&store, &User::admin(), &Attributes::Path { verb: "post", path: "/" }).is_some());
    }

    #[test]
    fn a_refusal_says_who_what_and_where() {
        let attributes =
            Attributes::Resource { verb: "delete", group: "", resource: "configmaps", namespace: "a", name: "x" };
        assert_eq!(
            attributes.refusal(&User::service_account("a", "u")),
            r#"User "system:serviceaccount:a:u" cannot delete resource "configmaps" in API group "" in the namespace "a""#
        );
    }
}
