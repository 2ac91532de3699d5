//! Jobs that come, run and expire in virtual time, and what they cost when many others have finished.

use super::{Bench, ratio, units, whole};
use anyhow::Result;

/// How many Jobs come, run and expire.
const COUNT: usize = 10_000;
/// How many come when others have finished.
const MORE: usize = 500;
/// How many have finished then.
const FINISHED: [usize; 4] = [1_000, 5_000, 10_000, 20_000];
/// How many when instructions are counted, which takes fifty times as long: as much as is ever remembered for watches is
/// remembered then.
const COUNTED: usize = 2_000;

pub(super) fn section(bench: &Bench) -> Result<String> {
    let count = bench.size(COUNT);
    let mut page = String::from(
        "A Job of one pod that sleeps for five seconds and expires ten minutes after its end: created by a client, scheduled,\n\
         started, finished, and taken away with its pod, with all events, statuses and finalizers on the way.\n\n",
    );
    let counted = |finished: usize| {
        let finished = finished.to_string();
        let more = bench.drydock.more_instructions(&["jobs", &finished, "60"], &["jobs", &finished, "20"])?;
        Ok::<_, anyhow::Error>(more.map(|instructions| instructions / 40.0))
    };
    let others = bench.size(COUNTED);
    if let Some((alone, beside)) = counted(0)?.zip(counted(others)?) {
        page.push_str(&format!(
            "A Job's life takes {} instructions from its creation to its end by TTL, and {} when {} others have finished.\n",
            whole(alone),
            whole(beside),
            whole(units(others))
        ));
    }
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
        "What is finished should make no step cost more. The time of {} Jobs more, when so many others have finished and stay\n\
         with their pods, relative to the first row; the best of three runs.\n\n| finished before | time of a Job |\n|---:|---:|\n",
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
