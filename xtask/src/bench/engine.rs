//! The engine: what it takes by itself, and what a whole release of many components and jobs takes on drydock.

use super::{Bench, ratio, units, whole};
use anyhow::Result;

/// Jobs of a component.
const JOBS: usize = 10;
/// How many components a release has.
const COMPONENTS: [usize; 3] = [25, 50, 100];

pub(super) fn section(bench: &Bench) -> Result<String> {
    let jobs = JOBS.to_string();
    let mut page = format!(
        "Components with {JOBS} jobs each, half of them before and half after.\n\n\
         By itself: jobs in code that do nothing, and no cluster is asked. On drydock: a plan whose components are manifests with a\n\
         Deployment and whose jobs are pods, with everything that the cluster does about them; and the same plan once more when\n\
         nothing has changed. Each figure is followed by how many times that of the row above it is; twice as much is linear.\n\n\
         | components | jobs | by itself | | first deploy | | memory | | nothing changed | |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    let mut above: Option<[f64; 4]> = None;
    for components in COMPONENTS {
        let components = bench.size(components).max(1);
        let text = components.to_string();
        let alone = bench.drydock.measure(&["engine", &text, &jobs])?;
        let first = bench.drydock.measure(&["deploy", &text, &jobs])?;
        let again = bench.drydock.measure(&["deploy", "--again", &text, &jobs])?;
        let figures = [alone.nanoseconds, first.nanoseconds, first.bytes, again.nanoseconds];
        let compared = |index: usize| above.map_or_else(String::new, |above| ratio(figures[index], above[index]));
        page.push_str(&format!(
            "| {components} | {} | {:.0} ms | {} | {:.2} s | {} | {:.0} MB | {} | {:.0} ms | {} |\n",
            whole(units(components * JOBS)),
            figures[0] / 1e6,
            compared(0),
            figures[1] / 1e9,
            compared(1),
            figures[2] / 1e6,
            compared(2),
            figures[3] / 1e6,
            compared(3),
        ));
        above = Some(figures);
    }
    let each = |components: &str| bench.drydock.instructions(&["engine", components, &jobs]);
    if let Some((more, less)) = each("100")?.zip(each("50")?) {
        page.push_str(&format!(
            "\nBy itself the engine takes {} instructions a job.\n",
            whole((more - less) / units(50 * JOBS))
        ));
    }
    Ok(page)
}
