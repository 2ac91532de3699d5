//! `jobwright lock run`: programs that never run at the same time, and `jobwright lock install`.

use crate::deploy::stage::{Running, Stage};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// Writes that it begins, works, and writes that it ends, also when it is told to; its child is deaf to SIGTERM.
const WORK: &str = "echo begin $1 >> witness\n\
    trap 'sleep 1; echo end '$1' >> witness; exit 3' TERM\n\
    sh -c 'trap \"\" TERM; while :; do echo work '$1' >> witness; sleep 0.05; done' & child=$!\n\
    i=0; while [ $i -lt $2 ]; do sleep 0.1; i=$((i+1)); done\n\
    kill -9 $child\n\
    echo end $1 >> witness\n";

struct Theatre(Stage);

impl Theatre {
    fn new() -> Self {
        let stage = Stage::in_real_time("");
        stage.create(&[]);
        stage.file("work.sh", WORK);
        Self(stage)
    }

    /// The command that runs the program under the lock, for so many tenths of a second.
    fn line(who: &str, tenths: u32) -> String {
        format!("lock run --name shop-migrate -n shop --wait 1m -- sh work.sh {who} {tenths}")
    }

    fn witness(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.path("witness")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn wait_for(&self, line: &str) {
        let has_come = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.witness().iter().any(|found| found == line)
        });
        assert!(has_come, "`{line}` is not in {:?}", self.witness());
    }

    /// One has written nothing after the other began.
    fn assert_apart(&self, other: &str, one: &str) {
        let lines = self.witness();
        let begin = lines.iter().position(|line| *line == format!("begin {other}")).unwrap();
        let late = lines[begin..].iter().filter(|line| line.ends_with(&format!(" {one}"))).count();
        assert_eq!(late, 0, "{lines:?}");
    }
}

/// Asks twice: the second time it is killed.
fn end_at_once(running: Running) {
    running.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    running.wait_within_a_minute();
}

#[test]
fn programs_under_one_lock_never_run_at_the_same_time() {
    let theatre = Theatre::new();
    let all: Vec<_> = ["a", "b", "c"].into_iter().map(|who| theatre.0.start(&Theatre::line(who, 5))).collect();
    for running in all {
        running.wait_within_a_minute().expect(0);
    }
    let mut current = String::new();
    for line in theatre.witness() {
        let (word, who) = line.split_once(' ').unwrap();
        match word {
            "begin" => {
                assert_eq!(current, "", "{line}: {:?}", theatre.witness());
                who.clone_into(&mut current);
            }
            "end" => current.clear(),
            _ => assert_eq!(current, who, "{:?}", theatre.witness()),
        }
    }
    assert_eq!(theatre.witness().iter().filter(|line| line.starts_with("begin")).count(), 3);
}

#[test]
fn a_program_that_is_told_to_end_keeps_the_lock_until_nothing_of_it_is_left() {
    let theatre = Theatre::new();
    let first = theatre.0.start(&Theatre::line("old", 600));
    theatre.wait_for("work old");
    let second = theatre.0.start(&Theatre::line("new", 3));
    second.wait_for_error("waiting for the lock shop/shop-migrate, which `");
    first.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(1500));
    // The child that is deaf goes on: only who has told it to end knows how long it may take.
    assert!(!theatre.witness().contains(&"begin new".to_owned()), "{:?}", theatre.witness());
    first.signal(Signal::TERM);
    first.wait_within_a_minute();
    second.wait_within_a_minute().expect(0);
    theatre.assert_apart("new", "old");
}

#[test]
fn a_program_whose_lock_is_lost_ends_before_the_next_begins() {
    let theatre = Theatre::new();
    let first = theatre.0.start(&Theatre::line("old", 600));
    theatre.wait_for("work old");
    let second = theatre.0.start(&Theatre::line("new", 3));
    second.wait_for_error("waiting for the lock");
    theatre.0.delete_lease("shop-migrate");
    let said = first.wait_within_a_minute().expect(5);
    assert!(said.error.contains("ended the program: the lock `shop-migrate` was lost"), "{}", said.error);
    second.wait_within_a_minute().expect(0);
    theatre.assert_apart("new", "old");
}

#[test]
fn a_program_of_a_killed_or_stopped_wrapper_ends_before_the_next_begins() {
    for signal in [Signal::KILL, Signal::STOP] {
        let theatre = Theatre::new();
        let first = theatre.0.start(&Theatre::line("old", 600));
        theatre.wait_for("work old");
        let second = theatre.0.start(&Theatre::line("new", 3));
        first.signal(signal);
        second.wait_within_a_minute().expect(0);
        first.signal(Signal::KILL);
        first.wait();
        theatre.assert_apart("new", "old");
    }
}

#[test]
fn the_exit_code_and_the_output_are_those_of_the_program() {
    let theatre = Theatre::new();
    theatre.0.file("seven.sh", "echo out; echo error >&2; exit 7\n");
    theatre.0.file("killed.sh", "kill -9 $$\n");
    let run = |program: &str| theatre.0.jobwright(&format!("lock run --name l -n shop -- {program}"));
    let said = run("sh seven.sh").expect(7);
    assert_eq!((said.out.as_str(), said.error.as_str()), ("out\n", "error\n"));
    run("sh killed.sh").expect(137);
    run("true").expect(0);
    let said = run("no-such-program").expect(2);
    assert!(said.error.contains("cannot start `no-such-program`"), "{}", said.error);
    // Each of them has released the lock.
    theatre.0.jobwright("lock run --name l -n shop --wait 1s -- true").expect(0);
}

#[test]
fn a_lock_that_stays_taken_fails_after_the_wait_and_ctrl_c_ends_the_wait() {
    let theatre = Theatre::new();
    let holder = theatre.0.start(&Theatre::line("old", 600));
    theatre.wait_for("work old");
    let busy = "lock run --name shop-migrate -n shop --wait 3s -- sh work.sh new 1";
    let said = theatre.0.jobwright(busy).expect(1);
    assert!(said.error.contains("still holds the lock `shop-migrate` after 3s"), "{}", said.error);
    assert!(said.error.contains("hint: pass a longer `--wait`"), "{}", said.error);
    let waiting = theatre.0.start(&Theatre::line("new", 1));
    waiting.wait_for_error("waiting for the lock");
    waiting.signal(Signal::TERM);
    let said = waiting.wait_within_a_minute().expect(130);
    assert!(said.error.contains("cancelled before the program started"), "{}", said.error);
    assert!(!theatre.witness().contains(&"begin new".to_owned()));
    end_at_once(holder);
}

#[test]
fn a_name_that_is_none_is_refused() {
    let theatre = Theatre::new();
    for name in ["A", "a_b", "-a", "a.", "a/b"] {
        let said = theatre.0.jobwright(&format!("lock run --name={name} -n shop -- true")).expect(2);
        assert!(said.error.contains("is no name of a Lease"), "{name}: {}", said.error);
    }
}

#[test]
fn install_copies_a_program_that_works_and_replaces_an_older_one() {
    let theatre = Theatre::new();
    std::fs::create_dir(theatre.0.path("tools")).unwrap();
    theatre.0.file("tools/jobwright", "old");
    theatre.0.jobwright("lock install tools").expect(0);
    let installed = theatre.0.path("tools/jobwright");
    assert_eq!(std::fs::metadata(&installed).unwrap().permissions().mode() & 0o777, 0o755);
    let version = std::process::Command::new(&installed).arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    assert_eq!(std::fs::read_dir(theatre.0.path("tools")).unwrap().count(), 1);
    let said = theatre.0.jobwright("lock install nowhere").expect(2);
    assert!(said.error.contains("cannot write to `nowhere`"), "{}", said.error);
}
