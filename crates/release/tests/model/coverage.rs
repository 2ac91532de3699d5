//! What the cases have to come across: a generator that explores less fails.

use crate::judge::Marks;

/// What has to happen how often in 300 cases.
const FLOORS: [(&str, usize); 27] = [
    ("aborted", 15),
    ("component removed", 18),
    ("deploys", 704),
    ("drift", 54),
    ("failed", 170),
    ("forced", 105),
    ("half-way failure", 87),
    ("job failed", 110),
    ("killed", 204),
    ("newer succeeded", 3),
    ("object moved", 30),
    ("object pruned", 55),
    ("overtaken", 33),
    ("paid", 80),
    ("redeployed", 92),
    ("refused", 27),
    ("rerun", 86),
    ("resumed", 56),
    ("retried", 60),
    ("rolled back", 34),
    ("satisfied", 192),
    ("selected", 102),
    ("settled", 4),
    ("skipped", 198),
    ("succeeded", 491),
    ("taken up", 39),
    ("unknown result", 5),
];

/// Fails unless everything has happened often enough.
pub(crate) fn check(marks: &Marks, cases: u32) {
    let cases = cases as usize;
    let missing =
        FLOORS.iter().filter(|(what, floor)| marks.get(what).copied().unwrap_or_default() < floor * cases / 300);
    let missing: Vec<String> =
        missing.map(|(what, floor)| format!("{what}: {:?}, at least {floor} in 300 cases", marks.get(what))).collect();
    assert!(missing.is_empty(), "{cases} cases do not explore enough: {}", missing.join("; "));
}
