//! Who asks, and whether they may: RBAC, read from the stored roles and bindings.

pub(crate) mod rbac;
mod review;
mod token;

pub(crate) use rbac::Attributes;
pub(crate) use review::review;
pub(crate) use token::{API_AUDIENCE, Token};

use serde_json::{Map, Value, json};

/// Somebody who sends requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name: `kubernetes-admin`, `system:serviceaccount:shop:migrate`.
    pub name: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
}

/// Members may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

impl User {
    /// Who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &[MASTERS])
    }

    /// A user in these groups, and in that of everybody who is known.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), groups }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &groups.each_ref().map(String::as_str))
    }

    /// The user that an admin asks to be taken for. The groups of service accounts follow from their names.
    pub(crate) fn impersonated(name: &str, groups: &[&str]) -> Self {
        let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        match account {
            Some((namespace, account)) if groups.is_empty() => Self::service_account(namespace, account),
            _ => Self::new(name, groups),
        }
    }

    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// The user as reviews show it.
    pub(crate) fn to_value(&self) -> Value {
        let mut user = Map::new();
        user.insert("username".to_owned(), json!(self.name));
        user.insert("groups".to_owned(), json!(self.groups));
        Value::Object(user)
    }
}
