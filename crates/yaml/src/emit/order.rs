//! The order of keys: letters after everything else, and numbers by their size.

use std::cmp::Ordering;

/// Compares keys as go-yaml's `keyList` does.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let ones: Vec<char> = one.chars().collect();
    let others: Vec<char> = other.chars().collect();
    let Some(at) = ones.iter().zip(&others).position(|(one, other)| one != other) else {
        return ones.len().cmp(&others.len());
    };
    let (first, second) = (ones[at], others[at]);
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (true, true) => return first.cmp(&second),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut start = 0;
    if first == '0' || second == '0' {
        // A zero within a number does not lead it.
        let before = ones[..at].iter().rev().take_while(|character| character.is_numeric());
        start = i64::from(before.into_iter().any(|character| *character != '0'));
    }
    let (first_number, first_end) = number(&ones, at, start);
    let (second_number, second_end) = number(&others, at, start);
    first_number.cmp(&second_number).then(first_end.cmp(&second_end)).then(first.cmp(&second))
}

fn number(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let mut sum = start;
    let mut end = at;
    while let Some(digit) = text.get(end).and_then(|character| character.to_digit(10)) {
        sum = sum.wrapping_mul(10).wrapping_add(digit.into());
        end += 1;
    }
    (sum, end)
}
