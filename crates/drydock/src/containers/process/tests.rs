//! Lines of shell, and what they do as time passes.

use super::*;
use proptest::prelude::*;

fn shell(text: &str) -> Process {
    Process::new(&["sh".to_owned(), "-c".to_owned(), text.to_owned()], BTreeMap::new())
}

/// What a line does in a minute: `0:hi 2:exit 1`.
fn story(text: &str) -> String {
    let effects = shell(text).run_until(Duration::from_mins(1));
    let told: Vec<String> = effects
        .iter()
        .map(|effect| match &effect.what {
            What::Printed(line) => format!("{}:{line}", effect.at.as_secs()),
            What::Exited(code) => format!("{}:exit {code}", effect.at.as_secs()),
        })
        .collect();
    told.join(" ")
}

#[test]
fn lines_do_what_they_say() {
    for (text, expected) in [
        ("echo hi", "0:hi 0:exit 0"),
        ("echo bad; exit 3", "0:bad 0:exit 3"),
        ("sleep 2; echo done", "2:done 2:exit 0"),
        ("sleep 1.5s && false || echo or", "1:or 1:exit 0"),
        ("false && echo no; true", "0:exit 0"),
        ("false", "0:exit 1"),
        ("! true", "0:exit 1"),
        ("for i in a b; do echo $i; sleep 1; done", "0:a 1:b 2:exit 0"),
        ("i=0; while [ $i -lt 2 ]; do i=$((i+1)); echo $i; sleep 1; done; exit $i", "0:1 1:2 2:exit 2"),
        (
            "touch /tmp/x; test -e /tmp/x && echo there; rm /tmp/x; [ -e /tmp/x ] || echo gone",
            "0:there 0:gone 0:exit 0",
        ),
        ("echo x > /tmp/f; test -f /tmp/f && echo made", "0:made 0:exit 0"),
        ("(exit 3); echo $?", "0:3 0:exit 0"),
        ("set -e; false; echo no", "0:exit 1"),
        ("set -e; false || true; if false; then :; fi; echo yes", "0:yes 0:exit 0"),
        ("migrate --all && echo ok", "1:ok 1:exit 0"),
        ("exec sleep 3", "3:exit 0"),
        ("sleep 5 & sleep 1; echo one; wait; echo all", "1:one 5:all 5:exit 0"),
        ("echo \"a  b\" $(echo inner) ${NONE:-default}", "0:a  b inner default 0:exit 0"),
        ("sleep 40 & wait; echo end", "40:end 40:exit 0"),
        ("while true; do sleep 30; done", ""),
        ("while true; do :; done", ""),
        ("sleep infinity", ""),
        ("printf '%s\\n' text", "0:text 0:exit 0"),
        ("until test -e /tmp/never; do sleep 100; done", ""),
        ("if test -z \"$X\"; then echo empty; else echo full; fi", "0:empty 0:exit 0"),
    ] {
        assert_eq!(story(text), expected, "{text}");
    }
}

#[test]
fn signals_reach_those_who_listen() {
    let at = Duration::from_secs;
    let mut deaf = shell("sleep 40");
    deaf.run_until(at(1));
    deaf.signal("TERM");
    assert!(deaf.run_until(at(30)).is_empty());

    let mut polite = shell("trap 'echo bye; exit 0' TERM; while true; do sleep 1; done");
    polite.run_until(at(5));
    polite.signal("TERM");
    let end = polite.run_until(at(10));
    assert_eq!(end.last(), Some(&Effect { at: at(6), what: What::Exited(0) }));

    let mut prompt = shell("trap 'exit 3' TERM; sleep 100 & wait");
    prompt.run_until(at(5));
    prompt.signal("TERM");
    assert_eq!(prompt.run_until(at(5)), [Effect { at: at(5), what: What::Exited(3) }]);

    let mut server = Process::new(&["/bin/server".to_owned()], BTreeMap::new());
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn files_keep_what_is_written_to_them() {
    let text = "echo one > a; echo two >> a; cat a; echo three > a; echo gone > /dev/null; seq 2 3 > n; cat a n";
    assert_eq!(story(text), "0:one 0:two 0:three 0:2 0:3 0:exit 0");
    let mut process = shell(text);
    process.run_until(Duration::ZERO);
    assert_eq!(process.file("a"), Some("three\n"));
}

#[test]
fn probes_see_the_files_of_the_process() {
    let mut process = shell("sleep 8; touch /tmp/ready; sleep 100");
    let words = ["test", "-e", "/tmp/ready"].map(str::to_owned);
    process.run_until(Duration::from_secs(7));
    assert!(!process.probe(&words));
    process.run_until(Duration::from_secs(8));
    assert!(process.probe(&words));
}

#[test]
fn time_in_steps_is_the_same_as_time_at_once() {
    let text = "for i in 1 2 3; do echo $i; sleep 1; done & sleep 2; echo mid; wait; exit 4";
    let mut stepped = shell(text);
    let effects: Vec<Effect> = (0..600).flat_map(|step| stepped.run_until(Duration::from_millis(step * 100))).collect();
    assert_eq!(effects, shell(text).run_until(Duration::from_mins(1)));
}

proptest! {
    #[test]
    fn no_line_hangs_or_panics(words in proptest::collection::vec(proptest::sample::select(
        vec!["while", "true", "do", "done", "sleep", "1", ";", "&&", "||", "echo", "$x", "&", "wait", "trap", "exit", "if", "then",
             "fi", "(", ")", "for", "in", "$(", "[", "]", "-e", "/f", "touch", "exec", "set", "-e", "x=$((x+1))"]), 0..25)) {
        let mut process = shell(&words.join(" "));
        process.run_until(Duration::from_hours(1));
        process.signal("TERM");
        process.run_until(Duration::from_hours(2));
    }
}
