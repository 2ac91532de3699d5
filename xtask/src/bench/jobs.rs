//! Jobs that come, run and expire in virtual time, and what they cost when many others have finished.

use super::{Bench, ratio, units, whole};
use anyhow::Result;

/// How many Jobs come, run and expire.
const COUNT: usize = 10_000;
/// How many come when others have finished.
const MORE: usize = 500;
/// How many have finished then.
const FINISHED: [usize; 4] = [1_000, 5_000, 10_000, 20_000];
/// How many when instructions are counted, which takes fifty times as long. From 2,000 on, as many writes are remembered
/// for watches as ever are, so that each write also forgets one.
const COUNTED: [usize; 4] = [0, 1_000, 2_000, 4_000];

pub(super) fn section(bench: &Bench) -> Result<String> {
    let count = bench.size(COUNT);
    let mut page = String::from(
        "A Job of one pod that sleeps for five seconds and expires ten minutes after its end: created by a client, scheduled,\n\
         started, finished, and taken away with its pod, with all events, statuses and finalizers on the way.\n\n",
    );
    page.push_str(&counted(bench)?);
    let tenth = bench.drydock.measure(&["jobs", "0", &(count / 10).to_string()])?;
    let all = bench.drydock.run(&["jobs", "0", &count.to_string()])?;
    page.push_str(&format!(
        "{} of them, a hundred at a time, each of which ran once and left nothing behind, took {:.1} s on a processor for {}\n\
         minutes of the cluster's time: {:.2} ms each, {} times as much as a tenth of them.\n\n",
        whole(units(count)),
        all.nanoseconds / 1e9,
        whole((units(count) / 10.0 + 620.0) / 60.0),
        all.nanoseconds / units(count) / 1e6,
        ratio(all.nanoseconds, tenth.nanoseconds),
    ));
    let more = bench.size(MORE);
    page.push_str(&format!(
        "The time of {} Jobs more, when so many others have finished, relative to the first row; the best of three runs. Only\n\
         in the first row is the history for watches not full yet: nothing is forgotten for what comes, and memory is new.\n\n\
         | finished before | time of a Job |\n|---:|---:|\n",
        whole(units(more))
    ));
    let mut first = None;
    for finished in FINISHED {
        let finished = bench.size(finished);
        let arguments = ["jobs", &finished.to_string(), &more.to_string()];
        let usage = bench.drydock.measure(&arguments)?;
        let base = *first.get_or_insert(usage.nanoseconds);
        page.push_str(&format!("| {} | {} |\n", whole(units(finished)), ratio(usage.nanoseconds, base)));
    }
    Ok(page)
}

/// How many instructions a Job's life takes when others have finished; nothing where nothing counts them.
fn counted(bench: &Bench) -> Result<String> {
    let mut table = String::from(
        "What is finished should make no step cost more: the instructions of one Job's life, from its creation to its end by TTL, when\n\
         so many others have finished and stay with their pods.\n\n| finished before | instructions of a Job |\n|---:|---:|\n",
    );
    for finished in COUNTED {
        let finished = bench.size(finished);
        let before = finished.to_string();
        let more = bench.drydock.more_instructions(&["jobs", &before, "60"], &["jobs", &before, "20"])?;
        let Some(instructions) = more else { return Ok(String::new()) };
        table.push_str(&format!("| {} | {} |\n", whole(units(finished)), whole(instructions / 40.0)));
    }
    table.push('\n');
    Ok(table)
}
