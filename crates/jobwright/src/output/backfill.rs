//! What became of a backfill, in tables for people; and what happens meanwhile.

mod screen;

pub(crate) use screen::Screen;

use super::table::{Cell, Table};
use super::{BAD, DIM, DOUBTFUL, GOOD, count, counted, duration, line, width};
use crate::arguments::Format;
use jobwright_jobs::backfill::{Completed, Ending, Kind, KindSummary, Summary};
use serde_json::json;
use std::time::Duration;

/// What became of a backfill. Kinds of which there is nothing to say are only counted, unless everything is wanted.
pub(crate) fn lines(summary: &Summary, everything: bool) -> Vec<String> {
    lines_within(summary, everything, width())
}

fn lines_within(summary: &Summary, everything: bool, width: usize) -> Vec<String> {
    if let Some(Completed { key, since, .. }) = &summary.kept {
        return vec![format!("{GOOD}kept{GOOD:#}: complete with {key} since {since:.0}")];
    }
    if let Some(reason) = &summary.skipped {
        return vec![format!("{DIM}skipped{DIM:#}: {reason}")];
    }
    let (told, silent): (Vec<&KindSummary>, Vec<&KindSummary>) =
        summary.kinds.iter().partition(|kind| everything || kind.counts.listed > 0 || !kind.errors.is_empty());
    let mut lines = Vec::new();
    if !told.is_empty() {
        let mut table = Table::new(&["kind", "version", "listed", "sent", "skipped", "pages", "remarks"]);
        for kind in told {
            table.row(row(kind));
        }
        lines.extend(table.lines(width));
    }
    let (done, open): (Vec<&KindSummary>, Vec<&KindSummary>) = silent.iter().partition(|kind| kind.finished);
    if !done.is_empty() {
        let kinds = counted(done.len() as u64, "kind has", "kinds have");
        lines.push(format!("{DIM}{kinds} no objects{DIM:#}"));
    }
    if !open.is_empty() {
        let kinds = counted(open.len() as u64, "kind was", "kinds were");
        lines.push(format!("{DOUBTFUL}{kinds} not listed to the end{DOUBTFUL:#}"));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(verdict(summary));
    if let Some(why) = &summary.names_only {
        lines.push(format!("{DOUBTFUL}secrets were only known by the names of fields{DOUBTFUL:#}: {why}"));
    }
    lines
}

fn row(kind: &KindSummary) -> Vec<Cell> {
    let counts = &kind.counts;
    let is_whole = kind.finished && kind.errors.is_empty();
    vec![
        Cell::styled(kind.kind.as_str(), if is_whole { anstyle::Style::new() } else { BAD }),
        kind.api_version.as_str().into(),
        count(counts.listed).into(),
        count(counts.sent).into(),
        count(counts.skipped).into(),
        count(counts.pages).into(),
        remarks(kind).into(),
    ]
}

/// What else there is to say of a kind.
fn remarks(kind: &KindSummary) -> String {
    let counts = &kind.counts;
    let mut remarks: Vec<String> = kind.errors.iter().map(ToString::to_string).collect();
    if !kind.finished && remarks.is_empty() {
        remarks.push("not listed to its end".to_owned());
    }
    if counts.expired > 0 {
        let times = if counts.expired == 1 { String::new() } else { format!(" {} times", counts.expired) };
        remarks.push(format!("went on at a later moment{times}"));
    }
    if counts.repeated > 0 {
        remarks.push(format!("{} perhaps sent twice", count(counts.repeated)));
    }
    if counts.retried > 0 {
        remarks.push(format!("{} made again", counted(counts.retried, "call", "calls")));
    }
    remarks.join("; ")
}

fn verdict(summary: &Summary) -> String {
    let (word, style) = match summary.ending() {
        Ending::Complete => ("complete", GOOD),
        Ending::Partial => ("incomplete", DOUBTFUL),
        Ending::Failed | Ending::Forbidden => ("failed", BAD),
        Ending::Cancelled => ("cancelled", DOUBTFUL),
    };
    let total = summary.total();
    let batches = &summary.batches;
    let mut text = format!(
        "{style}{word}{style:#}: {} of {} in {} to {} after {}",
        count(total.sent.saturating_sub(total.repeated)),
        counted(total.listed - total.skipped, "object", "objects"),
        counted(batches.sent, "batch", "batches"),
        summary.sink,
        duration(Duration::from_secs_f64(summary.seconds.max(0.0)))
    );
    if batches.failed > 0 {
        text.push_str(&format!(", {} refused", counted(batches.failed, "batch", "batches")));
    }
    if batches.retried > 0 {
        text.push_str(&format!(", {} made again", counted(batches.retried, "delivery", "deliveries")));
    }
    if let Some(why) = &summary.stopped {
        text.push_str(&format!("; {why}"));
    }
    text
}

/// Shows which kinds would be listed.
pub(crate) fn show_kinds(kinds: &[Kind], format: Format) {
    if format == Format::Json {
        let kind = |kind: &Kind| json!({"kind": kind.kind, "apiVersion": kind.api_version(), "name": kind.full_name(), "namespaced": kind.namespaced});
        line(&json!({"kinds": kinds.iter().map(kind).collect::<Vec<_>>()}).to_string());
        return;
    }
    let mut table = Table::new(&["kind", "version", "name"]);
    for kind in kinds {
        table.row(vec![kind.kind.as_str().into(), kind.api_version().into(), kind.full_name().into()]);
    }
    table.lines(width()).iter().for_each(|text| line(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobwright_jobs::backfill::{Batches, Counts, Problem};

    fn kind(name: &str, listed: u64, sent: u64, errors: Vec<Problem>) -> KindSummary {
        KindSummary {
            kind: name.to_owned(),
            api_version: "v1".to_owned(),
            finished: errors.is_empty(),
            counts: Counts { listed, sent, pages: 1, ..Counts::default() },
            errors,
        }
    }

    fn plain(summary: &Summary) -> Vec<String> {
        lines_within(summary, false, 100).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_table_says_what_there_is_to_say() {
        let forbidden = Problem { status: Some(403), message: "secrets is forbidden".to_owned() };
        let mut maps = kind("ConfigMap", 1200, 1207, Vec::new());
        maps.counts = Counts { expired: 1, repeated: 7, retried: 2, ..maps.counts };
        let mut summary = Summary {
            complete: false,
            kinds: vec![kind("Secret", 0, 0, vec![forbidden]), maps, kind("Lease", 0, 0, Vec::new())],
            batches: Batches { sent: 3, retried: 1, failed: 0, bytes: 1 },
            run: "r".to_owned(),
            resumed: false,
            cancelled: false,
            sink: "https://c.example/in".to_owned(),
            stopped: None,
            seconds: 3.25,
            kept: None,
            names_only: None,
            skipped: None,
        };
        assert_eq!(
            plain(&summary),
            [
                "KIND       VERSION  LISTED  SENT   SKIPPED  PAGES  REMARKS",
                "Secret     v1       0       0      0        1      403: secrets is forbidden",
                "ConfigMap  v1       1,200   1,207  0        1      went on at a later moment; 7 perhaps sent twice;",
                "                                                   2 calls made again",
                "1 kind has no objects",
                "",
                "incomplete: 1,200 of 1,200 objects in 3 batches to https://c.example/in after 3.2s, 1 delivery made again",
            ]
        );
        summary.kinds.truncate(0);
        summary.stopped = Some("the lock was lost".to_owned());
        assert!(plain(&summary)[0].ends_with("; the lock was lost"), "{:?}", plain(&summary));
    }
}
