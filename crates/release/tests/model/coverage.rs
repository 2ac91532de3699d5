//! What the cases have to come across: a generator that explores less fails.

use crate::judge::Marks;

/// What has to happen how often in 300 cases.
const FLOORS: [(&str, usize); 27] = [
    ("aborted", 15),
    ("component removed", 31),
    ("deploys", 598),
    ("drift", 45),
    ("failed", 165),
    ("forced", 79),
    ("half-way failure", 87),
    ("job failed", 103),
    ("killed", 153),
    ("newer succeeded", 5),
    ("object moved", 21),
    ("object pruned", 66),
    ("overtaken", 28),
    ("paid", 46),
    ("redeployed", 82),
    ("refused", 25),
    ("rerun", 70),
    ("resumed", 39),
    ("retried", 61),
    ("rolled back", 50),
    ("satisfied", 192),
    ("selected", 63),
    ("settled", 3),
    ("skipped", 101),
    ("succeeded", 408),
    ("taken up", 31),
    ("unknown result", 8),
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
