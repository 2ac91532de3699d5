//! Who a pending Helm release belongs to, and what is to be done about it.

use crate::component::helm::{Machine, Revision, Running};
use crate::record::HelmProcess;
use jiff::Timestamp;

/// What is to be done about a pending release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its helm has ended and will not come back.
    TakeOver,
    /// Its helm runs on this machine.
    Wait,
    /// It may be in progress elsewhere, for this reason.
    Refuse(String),
}

/// What is known of a pending release.
pub(super) struct Case<'a> {
    pub(super) release: &'a str,
    pub(super) pending: &'a Revision,
    /// The helm that this component started last, and has not seen ending.
    pub(super) process: Option<&'a HelmProcess>,
    pub(super) host: &'a str,
    pub(super) machine: &'a Machine,
    /// Whether a helm of this release runs on this machine.
    pub(super) running: Running,
    /// Whether the user says that its helm has ended.
    pub(super) is_unlocked: bool,
    pub(super) now: Timestamp,
}

impl Case<'_> {
    pub(super) fn judge(&self) -> Verdict {
        let (release, status, number) = (self.release, &self.pending.status, self.pending.number);
        if self.running == Running::Yes {
            return Verdict::Wait;
        }
        if self.is_unlocked {
            return Verdict::TakeOver;
        }
        let Some(process) = self.process.filter(|process| self.is_of(process)) else {
            return Verdict::Refuse(format!(
                "Helm release `{release}` is {status} (revision {number}): another client is changing it, or was killed; \
                 make sure that no helm is running, then pass `--unlock` or run `helm rollback {release}`"
            ));
        };
        let is_here = process.host == self.host && process.machine.is_some() && process.machine == self.machine.id;
        if process.until <= self.now || (is_here && self.running == Running::No) {
            return Verdict::TakeOver;
        }
        Verdict::Refuse(format!(
            "Helm release `{release}` is {status} (revision {number}): a helm on host `{}` may be running until {:.0}; \
             wait for it, or make sure that it has ended and pass `--unlock`",
            process.host, process.until
        ))
    }

    /// Whether a helm of ours created the revision: the one after that which it found, with the label that it was given,
    /// while it can have been running.
    fn is_of(&self, process: &HelmProcess) -> bool {
        self.pending.number == process.revision + 1
            && process.mark.as_ref().is_none_or(|mark| self.pending.mark.as_ref() == Some(mark))
            && self.pending.created.is_none_or(|created| created <= process.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);
    const LATER: Timestamp = Timestamp::constant(1_000_600, 0);

    fn judge(change: impl FnOnce(&mut HelmProcess, &mut Case<'_>)) -> Verdict {
        let machine = Machine { id: Some("boot pid:[1]".to_owned()) };
        let pending = Revision::example(4, "pending-upgrade", NOW);
        let mut process =
            HelmProcess { host: "ci".to_owned(), machine: machine.id.clone(), revision: 3, until: LATER, mark: None };
        let mut case = Case {
            release: "api",
            pending: &pending,
            process: None,
            host: "ci",
            machine: &machine,
            running: Running::No,
            is_unlocked: false,
            now: NOW,
        };
        change(&mut process, &mut case);
        Case { process: case.process.or(Some(&process)), ..case }.judge()
    }

    #[test]
    fn a_release_is_taken_over_only_when_its_helm_has_certainly_ended() {
        assert_eq!(judge(|_, _| {}), Verdict::TakeOver);
        assert_eq!(judge(|_, case| case.running = Running::Yes), Verdict::Wait);
        let refused = |verdict| matches!(verdict, Verdict::Refuse(_));
        assert!(refused(judge(|_, case| case.running = Running::Unknown)));
        assert!(refused(judge(|process, _| process.host = "other".to_owned())));
        assert!(refused(judge(|process, _| process.machine = Some("boot pid:[2]".to_owned()))));
        assert!(refused(judge(|process, _| process.machine = None)));
        // After its time limit it has ended, wherever it ran.
        for running in [Running::No, Running::Unknown] {
            let verdict = judge(|process, case| {
                process.host = "other".to_owned();
                (case.running, case.now) = (running, LATER);
            });
            assert_eq!(verdict, Verdict::TakeOver);
        }
    }

    #[test]
    fn a_release_of_another_client_is_never_taken_over_without_unlock() {
        let refused = |verdict| matches!(verdict, Verdict::Refuse(_));
        assert!(refused(judge(|process, _| process.revision = 2)));
        // Created when our helm had ended.
        assert!(refused(judge(|process, case| {
            process.until = Timestamp::constant(999_999, 0);
            case.now = LATER;
        })));
        assert_eq!(judge(|process, case| (process.revision, case.is_unlocked) = (2, true)), Verdict::TakeOver);
        // A helm that certainly runs is not disturbed.
        assert_eq!(judge(|_, case| (case.running, case.is_unlocked) = (Running::Yes, true)), Verdict::Wait);
    }

    #[test]
    fn a_revision_without_the_label_of_our_helm_is_another_clients() {
        let with = |label: Option<&str>| {
            let mut pending = Revision::example(4, "pending-upgrade", NOW);
            pending.mark = label.map(str::to_owned);
            let machine = Machine { id: Some("boot pid:[1]".to_owned()) };
            let process = HelmProcess {
                host: "ci".to_owned(),
                machine: machine.id.clone(),
                revision: 3,
                until: LATER,
                mark: Some("second".to_owned()),
            };
            let case = Case {
                release: "api",
                pending: &pending,
                process: Some(&process),
                host: "ci",
                machine: &machine,
                running: Running::No,
                is_unlocked: false,
                now: NOW,
            };
            case.judge()
        };
        assert_eq!(with(Some("second")), Verdict::TakeOver);
        // Inherited from the revision before, or none.
        for other in [Some("first"), None] {
            assert!(matches!(with(other), Verdict::Refuse(_)), "{other:?}");
        }
    }
}
