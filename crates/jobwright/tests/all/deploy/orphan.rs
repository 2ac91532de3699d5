//! A command whose `jobwright` is killed with SIGKILL, or stopped, ends before the next deploy starts it again.

use crate::deploy::stage::Stage;
use rustix::process::Signal;
use std::time::Duration;

/// The lines that commands have appended to the witness, with the id of their process.
fn read(stage: &Stage) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(stage.path("witness")).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(word, id)| (word.to_owned(), id.to_owned())).collect()
}

fn wait_until(stage: &Stage, condition: impl Fn(&[(String, String)]) -> bool) -> Vec<(String, String)> {
    let read = (0..6000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        Some(read(stage)).filter(|lines| condition(lines))
    });
    read.unwrap_or_else(|| panic!("the witness has {:?}", self::read(stage)))
}

fn starts(lines: &[(String, String)]) -> usize {
    lines.iter().filter(|(word, _)| word == "start").count()
}

#[test]
fn a_command_of_a_killed_deploy_never_runs_beside_that_of_the_next() {
    let old = interrupt_with(Signal::KILL);
    assert!(old.is_empty(), "the first runs beside the second: {old:?}");
}

#[test]
fn a_command_of_a_stopped_deploy_never_runs_beside_that_of_the_next() {
    let old = interrupt_with(Signal::STOP);
    assert!(old.is_empty(), "the first runs beside the second: {old:?}");
}

/// Sends a signal to a deploy whose command runs, and starts a second deploy. Gives what the first command wrote after the
/// second had started.
fn interrupt_with(signal: Signal) -> Vec<(String, String)> {
    // Two processes, one of which is deaf to SIGTERM.
    let script = "echo start $$ >> witness\n\
        sh -c 'trap \"\" TERM; while :; do echo child $PPID >> witness; sleep 0.05; done' &\n\
        while :; do echo tick $$ >> witness; sleep 0.05; done\n";
    let stage = Stage::new(
        "jobs:\n- {id: import, phase: pre, retires: {never: test}, command: {program: sh, args: [import.sh]}}\n",
    );
    stage.file("import.sh", script);
    let first = stage.start("deploy");
    let ticks = |id: &str, lines: &[(String, String)]| {
        ["tick", "child"].iter().all(|wanted| lines.iter().any(|(word, of)| word == wanted && of == id))
    };
    let lines = wait_until(&stage, |lines| lines.first().is_some_and(|(_, id)| ticks(id, lines)));
    let old = lines[0].1.clone();
    first.signal(signal);
    let second = stage.start("deploy");
    let lines =
        wait_until(&stage, |lines| starts(lines) == 2 && lines.iter().filter(|(_, id)| *id != old).count() > 20);
    let second_start = lines.iter().position(|(word, id)| word == "start" && *id != old).unwrap();
    let late = lines[second_start..].iter().filter(|(_, id)| *id == old).cloned().collect();
    second.signal(Signal::INT);
    second.wait_within_a_minute().expect(130);
    first.signal(Signal::KILL);
    first.wait();
    late
}
