//! Guards: what a release may not do, whatever its jobs say.

use crate::job::Retires;
use crate::version::Version;

/// A release that would break a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The upgrade leaves a version out.
    #[error("{to} cannot follow {from}: {expected}")]
    Skips {
        /// What is deployed.
        from: Version,
        /// What is to be deployed.
        to: Version,
        /// What could have been deployed instead.
        expected: String,
    },
    /// What is deployed is newer.
    #[error("{to} is older than {from}, which is deployed")]
    Older {
        /// What is deployed.
        from: Version,
        /// What is to be deployed.
        to: Version,
    },
    /// A job should have gone by now.
    #[error("job `{job}` retires at {at}, and this release is {version}: remove it")]
    Retired {
        /// The job.
        job: String,
        /// The first version without it.
        at: Version,
        /// What is to be deployed.
        version: Version,
    },
}

/// What is wrong with an upgrade that is not one step: from a version that begins with one of `allowed`, or, where
/// nothing is declared, from the same or the previous minor version. The same version again is always one.
pub(crate) fn judge_upgrade(from: &Version, to: &Version, allowed: Option<&[Version]>) -> Option<Violation> {
    if to < from {
        return Some(Violation::Older { from: from.clone(), to: to.clone() });
    }
    let expected = match allowed {
        _ if from == to => return None,
        Some(allowed) if allowed.iter().any(|prefix| from.starts_with(prefix)) => return None,
        None if from.major() == to.major() && to.minor() - from.minor() <= 1 => return None,
        Some(allowed) => {
            let names: Vec<&str> = allowed.iter().map(Version::as_str).collect();
            format!("it upgrades from {}", if names.is_empty() { "nothing".to_owned() } else { names.join(", ") })
        }
        None if from.major() == to.major() => {
            format!("upgrades go through one minor version after the other, {}.{} next", from.major(), from.minor() + 1)
        }
        None => {
            format!("which version comes before {}.{} has to be declared with `upgradeFrom`", to.major(), to.minor())
        }
    };
    Some(Violation::Skips { from: from.clone(), to: to.clone(), expected })
}

/// What is wrong with a job that has outlived itself.
pub(crate) fn judge_retirement(job: &str, retires: &Retires, version: Option<&Version>) -> Option<Violation> {
    match (retires, version) {
        (Retires::At(at), Some(version)) if version >= at => {
            Some(Violation::Retired { job: job.to_owned(), at: at.clone(), version: version.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn check(from: &str, to: &str, allowed: Option<&[&str]>) -> Option<String> {
        let allowed: Option<Vec<Version>> = allowed.map(|list| list.iter().map(|text| version(text)).collect());
        judge_upgrade(&version(from), &version(to), allowed.as_deref()).map(|violation| violation.to_string())
    }

    #[test]
    fn upgrades_are_linear() {
        assert_eq!(check("1.3.9", "1.4.0", None), None);
        assert_eq!(check("1.4.0", "1.4.0", None), None);
        assert_eq!(check("1.4.0", "1.4.2", None), None);
        assert_eq!(
            check("1.2.0", "1.4.0", None).unwrap(),
            "1.4.0 cannot follow 1.2.0: upgrades go through one minor version after the other, 1.3 next"
        );
        assert!(check("1.4.0", "1.6.0", None).unwrap().ends_with("1.5 next"));
        assert_eq!(
            check("1.9.0", "2.0.0", None).unwrap(),
            "2.0.0 cannot follow 1.9.0: which version comes before 2.0 has to be declared with `upgradeFrom`"
        );
        assert_eq!(check("1.4.1", "1.4.0", None).unwrap(), "1.4.0 is older than 1.4.1, which is deployed");
    }

    #[test]
    fn a_declared_list_is_the_whole_list() {
        assert_eq!(check("1.9.3", "2.0.0", Some(&["1.9", "1.8"])), None);
        assert_eq!(check("2.0.0", "2.0.0", Some(&["1.9"])), None);
        assert_eq!(
            check("1.7.0", "2.0.0", Some(&["1.9", "1.8"])).unwrap(),
            "2.0.0 cannot follow 1.7.0: it upgrades from 1.9, 1.8"
        );
        assert!(check("1.0.0", "1.1.0", Some(&[])).unwrap().ends_with("it upgrades from nothing"));
    }

    #[test]
    fn a_job_retires_when_its_version_is_reached() {
        let retires = Retires::At(version("2.0.0"));
        assert_eq!(judge_retirement("move", &retires, Some(&version("1.9.0"))), None);
        assert_eq!(judge_retirement("move", &retires, None), None);
        let refused = judge_retirement("move", &retires, Some(&version("2.0"))).unwrap();
        assert_eq!(refused.to_string(), "job `move` retires at 2.0.0, and this release is 2.0: remove it");
        assert_eq!(judge_retirement("move", &Retires::never("base"), Some(&version("9.0"))), None);
    }
}
