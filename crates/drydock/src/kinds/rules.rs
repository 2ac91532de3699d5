//! What the API server knows of particular kinds: defaults, generated fields, and what it refuses.

use crate::field::FieldError;
use crate::object::Object;

/// The rules of one kind. Each function is pure: what depends on other objects is admission's business.
pub(crate) struct Rules {
    /// How names must look.
    pub(crate) name: NameRule,
    /// When `metadata.generation` goes up.
    pub(crate) generation: Generation,
    /// Fills in what the client left out, for objects that are new, changed or read.
    pub(crate) default: fn(&mut Object),
    /// Generates and clears fields of a new object.
    pub(crate) prepare_create: fn(&mut Object),
    /// Carries over what an update may not change: (new, old).
    pub(crate) prepare_update: fn(&mut Object, &Object),
    /// What is wrong with a new object.
    pub(crate) check: fn(&Object) -> Vec<FieldError>,
    /// What is wrong with a changed object: (new, old).
    pub(crate) check_update: fn(&Object, &Object) -> Vec<FieldError>,
    /// What is wrong with a changed status: (new, old).
    pub(crate) check_status: fn(&Object, &Object) -> Vec<FieldError>,
    /// An update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// An update without a resourceVersion is taken, whatever is stored.
    pub(crate) unconditional_update: bool,
}

/// How the names of a kind's objects must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower-case words with dots and dashes, up to 253 characters.
    Subdomain,
    /// Lower-case words with dashes, up to 63 characters.
    Label,
    /// As a label, starting with a letter.
    ServiceLabel,
    /// Anything that may be one segment of a path.
    PathSegment,
}

/// When `metadata.generation` goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    Never,
    /// When `spec` changes.
    WithSpec,
    /// When anything but metadata and status changes.
    WithContent,
}

/// The rules of kinds that have none of their own.
pub(crate) const PLAIN: Rules = Rules {
    name: NameRule::Subdomain,
    generation: Generation::Never,
    default: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    check: |_| Vec::new(),
    check_update: |_, _| Vec::new(),
    check_status: |_, _| Vec::new(),
    create_on_update: false,
    unconditional_update: true,
};

/// The rules of custom resources; their schemas say the rest.
pub(crate) static CUSTOM: Rules = Rules { generation: Generation::WithContent, unconditional_update: false, ..PLAIN };

macro_rules! plain { ($($name:ident),*) => { $( pub(crate) static $name: Rules = Rules { ..PLAIN }; )* } }
plain!(
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    CLAIM,
    VOLUME,
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE,
    WEBHOOKS,
    ADMISSION_POLICY,
    DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    AUTOSCALER,
    CRON_JOB,
    JOB,
    INGRESS,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    ROLE_BINDING,
    ROLE,
    PRIORITY_CLASS,
    STORAGE_CLASS
);
