//! Objects: from nothing to the first answer, created, listed, watched, and what they weigh.

use super::program::Program;
use super::{Bench, ratio, units, whole};
use anyhow::Result;

/// How many objects there are.
const COUNT: usize = 10_000;
/// Instructions are counted for the second half of these, because counting is slow.
const COUNTED: usize = 1_000;
/// Nanoseconds between two looks of the kernel at who uses a processor: what is shorter may go unseen.
const TICK: f64 = 4e6;

pub(super) fn section(bench: &Bench) -> Result<String> {
    let mut page = String::from(
        "ConfigMaps of half a kilobyte with labels, sent and read by a real `kube::Client`, whose own work is part of every\n\
         figure. The peer, kube-fake-client as it comes, has a simpler model: what is created is checked by no schema and gets\n\
         neither defaults nor records of who manages a field, and there is no watch to tell, so it may well be faster.\n\n\
         | | instructions each, drydock | kube-fake-client | ratio | time of all, drydock | kube-fake-client | ratio |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    let start = |program: &Program| program.more_instructions(&["start"], &["nothing"]);
    page.push_str(&row(bench, "from nothing to the first answer", start, &["start"], 1)?);

    let (count, half, all) = (bench.size(COUNT), bench.size(COUNTED), bench.size(2 * COUNTED));
    let [count_text, half_text, all_text] = [count, half, all].map(|count| count.to_string());
    let each = |instructions: Option<f64>| instructions.map(|instructions| instructions / units(half));
    let create =
        |program: &Program| Ok(each(program.more_instructions(&["create", &all_text], &["create", &half_text])?));
    page.push_str(&row(bench, "created", create, &["create", &count_text], 1)?);
    let list = |program: &Program| {
        Ok(each(program.more_instructions(&["list", &half_text, "2"], &["list", &half_text, "1"])?))
    };
    page.push_str(&row(bench, "listed", list, &["list", &count_text, "3"], 3)?);
    let watch = |program: &Program| Ok(each(program.more_instructions(&["watch", &all_text], &["watch", &half_text])?));
    let (instructions, time) = take(&bench.drydock, watch, &["watch", &count_text], 1)?;
    page.push_str(&format!(
        "| created under a watch | {} | has none | – | {} | has none | – |\n",
        instructions.map_or_else(|| "–".to_owned(), whole),
        milliseconds(time)
    ));

    page.push_str(&format!(
        "\nTimes are those of all {} objects on a processor, the best of three runs; instructions those of one object when there are {}\n\
         others.\n\n",
        whole(units(count)),
        whole(units(half))
    ));
    page.push_str(&weigh(bench, count)?);
    Ok(page)
}

/// What a program takes for something: instructions if they are counted, and nanoseconds of one time out of some.
fn take(
    program: &Program,
    count: impl Fn(&Program) -> Result<Option<f64>>,
    timed: &[&str],
    times: usize,
) -> Result<(Option<f64>, f64)> {
    Ok((count(program)?, program.measure(timed)?.nanoseconds / units(times)))
}

/// A row of the table: what drydock takes, what the peer takes, and how that compares.
fn row(
    bench: &Bench,
    name: &str,
    count: impl Fn(&Program) -> Result<Option<f64>>,
    timed: &[&str],
    times: usize,
) -> Result<String> {
    let shown = |count: Option<f64>| count.map_or_else(|| "–".to_owned(), whole);
    let (drydock, time) = take(&bench.drydock, &count, timed, times)?;
    let Some(peer) = bench.peer.program() else {
        return Ok(format!("| {name} | {} | – | – | {} | – | – |\n", shown(drydock), milliseconds(time)));
    };
    let (other, other_time) = take(peer, &count, timed, times)?;
    let instructions = drydock.zip(other).map_or_else(|| "–".to_owned(), |(one, other)| ratio(one, other));
    Ok(format!(
        "| {name} | {} | {} | {instructions} | {} | {} | {} |\n",
        shown(drydock),
        shown(other),
        milliseconds(time),
        milliseconds(other_time),
        if other_time < TICK { "–".to_owned() } else { ratio(time, other_time) }
    ))
}

fn milliseconds(nanoseconds: f64) -> String {
    let milliseconds = nanoseconds / 1e6;
    if nanoseconds < TICK {
        format!("< {:.0} ms", TICK / 1e6)
    } else if milliseconds >= 100.0 {
        format!("{} ms", whole(milliseconds))
    } else {
        format!("{milliseconds:.0} ms")
    }
}

fn weigh(bench: &Bench, count: usize) -> Result<String> {
    let arguments = ["create", &count.to_string()];
    let each = |program: &Program| Ok::<f64, anyhow::Error>(program.measure(&arguments)?.bytes / units(count));
    let drydock = each(&bench.drydock)?;
    let mut text = format!("A stored object takes {} bytes of memory in drydock", whole(drydock));
    if let Some(peer) = bench.peer.program() {
        let other = each(peer)?;
        text.push_str(&format!(
            ", {} times as much as the {} of kube-fake-client",
            ratio(drydock, other),
            whole(other)
        ));
    }
    text.push_str(
        ": the object itself, with\nits records of managed fields, as the tree of JSON that watches and lists share.\n",
    );
    Ok(text)
}
