//! Layouts: how Go writes dates, by the example of `Mon Jan 2 15:04:05 MST 2006`.

use super::Time;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LongMonth,
    Month,
    MonthNumber,
    MonthZero,
    LongWeekday,
    Weekday,
    Day,
    DaySpace,
    DayZero,
    YearDay,
    YearDaySpace,
    Hour,
    Hour12,
    Hour12Zero,
    Minute,
    MinuteZero,
    Second,
    SecondZero,
    LongYear,
    Year,
    UpperNoon,
    LowerNoon,
    ZoneName,
    /// Whether UTC is `Z`, whether there are colons, and how many of hours, minutes and seconds there are.
    Offset {
        zulu: bool,
        colons: bool,
        parts: u8,
    },
    /// The separator, how many digits, and whether zeros at the end are left out.
    Fraction(char, usize, bool),
}

/// Parts that are words, longest first.
const WORDS: &[(&str, Part)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::Month),
    ("Monday", Part::LongWeekday),
    ("Mon", Part::Weekday),
    ("MST", Part::ZoneName),
    ("002", Part::YearDay),
    ("01", Part::MonthZero),
    ("02", Part::DayZero),
    ("03", Part::Hour12Zero),
    ("04", Part::MinuteZero),
    ("05", Part::SecondZero),
    ("06", Part::Year),
    ("15", Part::Hour),
    ("1", Part::MonthNumber),
    ("2006", Part::LongYear),
    ("2", Part::Day),
    ("__2", Part::YearDaySpace),
    ("_2", Part::DaySpace),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::UpperNoon),
    ("pm", Part::LowerNoon),
    ("-07:00:00", Part::Offset { zulu: false, colons: true, parts: 3 }),
    ("-07:00", Part::Offset { zulu: false, colons: true, parts: 2 }),
    ("-070000", Part::Offset { zulu: false, colons: false, parts: 3 }),
    ("-0700", Part::Offset { zulu: false, colons: false, parts: 2 }),
    ("-07", Part::Offset { zulu: false, colons: false, parts: 1 }),
    ("Z07:00:00", Part::Offset { zulu: true, colons: true, parts: 3 }),
    ("Z07:00", Part::Offset { zulu: true, colons: true, parts: 2 }),
    ("Z070000", Part::Offset { zulu: true, colons: false, parts: 3 }),
    ("Z0700", Part::Offset { zulu: true, colons: false, parts: 2 }),
    ("Z07", Part::Offset { zulu: true, colons: false, parts: 1 }),
];

/// Cuts a layout at its first part: what is before it, the part, and what is after it.
fn next_part(layout: &str) -> (&str, Option<(Part, &str)>, &str) {
    for (at, character) in layout.char_indices() {
        let rest = &layout[at..];
        // `_2006` is an underscore and a year.
        if rest.starts_with("_2006") {
            let after = &layout[at + 5..];
            return (&layout[..=at], Some((Part::LongYear, &layout[at + 1..at + 5])), after);
        }
        if let Some((word, part)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
            let continues = |word: &str| rest[word.len()..].starts_with(|next: char| next.is_ascii_lowercase());
            if !(matches!(part, Part::Month | Part::Weekday) && continues(word)) {
                return (&layout[..at], Some((*part, word)), &rest[word.len()..]);
            }
        }
        if matches!(character, '.' | ',') {
            let digits = &rest[1..];
            let digit = digits.chars().next().filter(|digit| matches!(digit, '0' | '9'));
            if let Some(digit) = digit {
                let count = digits.chars().take_while(|next| *next == digit).count();
                if !digits[count..].starts_with(|next: char| next.is_ascii_digit()) {
                    let part = Part::Fraction(character, count, digit == '9');
                    return (&layout[..at], Some((part, &rest[..=count])), &digits[count..]);
                }
            }
        }
    }
    (layout, None, "")
}

/// `Time.Format`
pub(crate) fn format(time: &Time, layout: &str) -> String {
    let mut output = String::new();
    let mut rest = layout;
    loop {
        let (before, part, after) = next_part(rest);
        output.push_str(before);
        let Some((part, _)) = part else { return output };
        output.push_str(&show(time, part));
        rest = after;
    }
}

fn show(time: &Time, part: Part) -> String {
    let zoned = &time.zoned;
    let month = usize::try_from(zoned.month()).unwrap_or(1) - 1;
    let weekday = usize::try_from(zoned.weekday().to_sunday_zero_offset()).unwrap_or_default();
    let hour12 = if zoned.hour() % 12 == 0 { 12 } else { zoned.hour() % 12 };
    match part {
        Part::LongMonth => MONTHS[month].to_owned(),
        Part::Month => MONTHS[month][..3].to_owned(),
        Part::MonthNumber => zoned.month().to_string(),
        Part::MonthZero => format!("{:02}", zoned.month()),
        Part::LongWeekday => DAYS[weekday].to_owned(),
        Part::Weekday => DAYS[weekday][..3].to_owned(),
        Part::Day => zoned.day().to_string(),
        Part::DaySpace => format!("{:2}", zoned.day()),
        Part::DayZero => format!("{:02}", zoned.day()),
        Part::YearDay => format!("{:03}", zoned.day_of_year()),
        Part::YearDaySpace => format!("{:3}", zoned.day_of_year()),
        Part::Hour => format!("{:02}", zoned.hour()),
        Part::Hour12 => hour12.to_string(),
        Part::Hour12Zero => format!("{hour12:02}"),
        Part::Minute => zoned.minute().to_string(),
        Part::MinuteZero => format!("{:02}", zoned.minute()),
        Part::Second => zoned.second().to_string(),
        Part::SecondZero => format!("{:02}", zoned.second()),
        Part::LongYear => format!("{:04}", zoned.year()),
        Part::Year => format!("{:02}", zoned.year().rem_euclid(100)),
        Part::UpperNoon => if zoned.hour() >= 12 { "PM" } else { "AM" }.to_owned(),
        Part::LowerNoon => if zoned.hour() >= 12 { "pm" } else { "am" }.to_owned(),
        Part::ZoneName => zone_name(time),
        Part::Offset { zulu, colons, parts } => {
            let seconds = zoned.offset().seconds();
            if zulu && seconds == 0 { "Z".to_owned() } else { offset(seconds, colons, parts) }
        }
        Part::Fraction(separator, count, trims) => {
            let digits = format!("{:09}", zoned.subsec_nanosecond());
            let digits = &digits[..count.min(9)];
            let digits = if trims { digits.trim_end_matches('0') } else { digits };
            if digits.is_empty() { String::new() } else { format!("{separator}{digits}") }
        }
    }
}

fn zone_name(time: &Time) -> String {
    let zone = time.zoned.time_zone();
    if *zone == TimeZone::UTC {
        return "UTC".to_owned();
    }
    let info = zone.to_offset_info(time.timestamp());
    let name = info.abbreviation();
    if name.starts_with(['+', '-']) { offset(time.zoned.offset().seconds(), false, 2) } else { name.to_owned() }
}

fn offset(seconds: i32, colons: bool, parts: u8) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let size = seconds.unsigned_abs();
    let colon = if colons { ":" } else { "" };
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    match parts {
        1 => format!("{sign}{hours:02}"),
        2 => format!("{sign}{hours:02}{colon}{minutes:02}"),
        _ => format!("{sign}{hours:02}{colon}{minutes:02}{colon}{seconds:02}"),
    }
}

/// What has been read of a date.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    afternoon: Option<bool>,
    offset: Option<i32>,
    zone_is_utc: bool,
}

/// `time.ParseInLocation`; `Err` has Go's message.
pub(crate) fn parse(layout: &str, text: &str, zone: &TimeZone) -> Result<Time, String> {
    let quoted = |text: &str| crate::quote::quote(text.as_bytes(), false);
    let fail = |rest: &str, element: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quoted(text),
            quoted(layout),
            quoted(rest),
            quoted(element)
        )
    };
    let outside = |what: &str| format!("parsing time {}: {what} out of range", quoted(text));
    let mut fields = Fields::default();
    let mut pattern = layout;
    let mut rest = text;
    loop {
        let (before, part, after) = next_part(pattern);
        rest = skip(rest, before).ok_or_else(|| fail(rest, before))?;
        let Some((part, element)) = part else {
            if !rest.is_empty() {
                return Err(format!("parsing time {}: extra text: {}", quoted(text), quoted(rest)));
            }
            break;
        };
        let follows = !matches!(next_part(after), (_, Some((Part::Fraction(..), _)), _));
        match read(part, rest, &mut fields, follows) {
            Ok(next) => rest = next,
            Err(Some(what)) => return Err(outside(what)),
            Err(None) => return Err(fail(rest, element)),
        }
        pattern = after;
    }
    finish(&fields, zone).map_err(outside)
}

fn finish(fields: &Fields, zone: &TimeZone) -> Result<Time, &'static str> {
    let hour = match fields.afternoon {
        Some(true) if fields.hour < 12 => fields.hour + 12,
        Some(false) if fields.hour == 12 => 0,
        _ => fields.hour,
    };
    let date = match fields.year_day {
        Some(day) if fields.month.is_none() => {
            let first = Date::new(fields.year as i16, 1, 1).map_err(|_| "year")?;
            first.checked_add(jiff::Span::new().days(day - 1)).map_err(|_| "day-of-year")?
        }
        _ => Date::new(fields.year as i16, fields.month.unwrap_or(1) as i8, fields.day.unwrap_or(1) as i8)
            .map_err(|_| "day")?,
    };
    let time = jiff::civil::Time::new(hour as i8, fields.minute as i8, fields.second as i8, fields.nanosecond as i32)
        .map_err(|_| "hour")?;
    let moment = DateTime::from_parts(date, time);
    let zone = match fields.offset {
        Some(0) => TimeZone::UTC,
        Some(seconds) => TimeZone::fixed(Offset::from_seconds(seconds).map_err(|_| "time zone offset")?),
        None if fields.zone_is_utc => TimeZone::UTC,
        None => zone.clone(),
    };
    let zoned = moment.to_zoned(zone).map_err(|_| "year")?;
    Ok(Time { zoned })
}

/// Skips text that has to stand there; several spaces are as good as one.
fn skip<'t>(mut text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut prefix = prefix;
    while let Some(next) = prefix.chars().next() {
        if next == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return None;
            }
            prefix = prefix.trim_start_matches(' ');
            text = text.trim_start_matches(' ');
            continue;
        }
        text = text.strip_prefix(next)?;
        prefix = &prefix[next.len_utf8()..];
    }
    Some(text)
}

/// Reads a part; `Err(Some(_))` names what is out of range.
fn read<'t>(part: Part, text: &'t str, fields: &mut Fields, follows: bool) -> Result<&'t str, Option<&'static str>> {
    let digits = |text: &'t str, least: usize, most: usize| {
        let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least { Err(None) } else { Ok((text[..count].parse::<i64>().map_err(|_| None)?, &text[count..])) }
    };
    let within = |number: i64, least: i64, most: i64, what| {
        if (least..=most).contains(&number) { Ok(number) } else { Err(Some(what)) }
    };
    let name = |text: &'t str, names: &[&str], length: usize| {
        names.iter().enumerate().find_map(|(index, name)| {
            let name = &name[..length.min(name.len())];
            let found = text.get(..name.len())?.eq_ignore_ascii_case(name);
            found.then(|| (index as i64, &text[name.len()..]))
        })
    };
    let number;
    let mut rest;
    match part {
        Part::LongMonth | Part::Month => {
            let length = if part == Part::Month { 3 } else { usize::MAX };
            (number, rest) = name(text, &MONTHS, length).ok_or(None)?;
            fields.month = Some(number + 1);
        }
        Part::LongWeekday => (_, rest) = name(text, &DAYS, usize::MAX).ok_or(None)?,
        Part::Weekday => (_, rest) = name(text, &DAYS, 3).ok_or(None)?,
        Part::MonthNumber | Part::MonthZero => {
            (number, rest) = digits(text, if part == Part::MonthZero { 2 } else { 1 }, 2)?;
            fields.month = Some(within(number, 1, 12, "month")?);
        }
        Part::Day | Part::DaySpace | Part::DayZero => {
            let text = if part == Part::DaySpace { text.strip_prefix(' ').unwrap_or(text) } else { text };
            (number, rest) = digits(text, if part == Part::DayZero { 2 } else { 1 }, 2)?;
            fields.day = Some(within(number, 1, 31, "day")?);
        }
        Part::YearDay | Part::YearDaySpace => {
            let bare = if part == Part::YearDaySpace { text.trim_start_matches(' ') } else { text };
            (number, rest) = digits(bare, if part == Part::YearDay { 3 } else { 1 }, 3)?;
            fields.year_day = Some(within(number, 1, 366, "day-of-year")?);
        }
        Part::Hour => {
            (number, rest) = digits(text, 2, 2)?;
            fields.hour = within(number, 0, 23, "hour")?;
        }
        Part::Hour12 | Part::Hour12Zero => {
            (number, rest) = digits(text, if part == Part::Hour12Zero { 2 } else { 1 }, 2)?;
            fields.hour = within(number, 0, 12, "hour")?;
        }
        Part::Minute | Part::MinuteZero => {
            (number, rest) = digits(text, if part == Part::MinuteZero { 2 } else { 1 }, 2)?;
            fields.minute = within(number, 0, 59, "minute")?;
        }
        Part::Second | Part::SecondZero => {
            (number, rest) = digits(text, if part == Part::SecondZero { 2 } else { 1 }, 2)?;
            fields.second = within(number, 0, 59, "second")?;
            // A fraction may follow the seconds without being in the layout.
            if follows && rest.starts_with(['.', ',']) {
                let count = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                if count > 0 {
                    fields.nanosecond = nanoseconds(&rest[1..=count]);
                    rest = &rest[count + 1..];
                }
            }
        }
        Part::LongYear => (fields.year, rest) = digits(text, 4, 4)?,
        Part::Year => {
            (number, rest) = digits(text, 2, 2)?;
            fields.year = if number >= 69 { 1900 + number } else { 2000 + number };
        }
        Part::UpperNoon | Part::LowerNoon => {
            let words = if part == Part::UpperNoon { ["AM", "PM"] } else { ["am", "pm"] };
            let index = words.iter().position(|word| text.starts_with(word)).ok_or(None)?;
            fields.afternoon = Some(index == 1);
            rest = &text[2..];
        }
        Part::ZoneName => {
            if let Some(after) = text.strip_prefix("UTC") {
                fields.zone_is_utc = true;
                return Ok(after);
            }
            let count = text.bytes().take(5).take_while(u8::is_ascii_uppercase).count();
            if count < 3 {
                return Err(None);
            }
            // Go invents a zone of this name with the offset of UTC where it does not know it.
            fields.zone_is_utc = true;
            rest = &text[count..];
        }
        Part::Offset { zulu, colons, parts } => {
            if zulu && let Some(after) = text.strip_prefix('Z') {
                fields.offset = Some(0);
                return Ok(after);
            }
            let sign = if text.starts_with('-') { -1 } else { 1 };
            let mut left = text.strip_prefix(['+', '-']).ok_or(None)?;
            let mut seconds = 0;
            for (index, size) in [3600, 60, 1].into_iter().take(parts.into()).enumerate() {
                if colons && index > 0 {
                    left = left.strip_prefix(':').ok_or(None)?;
                }
                let (number, after) = digits(left, 2, 2)?;
                let most = if index == 0 { 24 } else { 60 };
                seconds += i32::try_from(within(number, 0, most, "time zone offset")?).unwrap_or(0) * size;
                left = after;
            }
            fields.offset = Some(sign * seconds);
            rest = left;
        }
        Part::Fraction(_, count, trims) => {
            let has_separator = text.starts_with(['.', ',']);
            let found = text.get(1..).unwrap_or("").bytes().take_while(u8::is_ascii_digit).count();
            if trims && (!has_separator || found == 0) {
                return Ok(text);
            }
            let count = if trims { found } else { count };
            if !has_separator || found < count {
                return Err(None);
            }
            fields.nanosecond = nanoseconds(&text[1..=count]);
            rest = &text[count + 1..];
        }
    }
    Ok(rest)
}

fn nanoseconds(digits: &str) -> i64 {
    let digits = &digits[..digits.len().min(9)];
    format!("{digits:0<9}").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn dates_are_written_by_example() {
        let time = Time::new(Timestamp::from_nanosecond(1_577_934_245_120_000_000).expect("a time"), TimeZone::UTC);
        for (layout, expected) in [
            ("2006-01-02T15:04:05Z07:00", "2020-01-02T03:04:05Z"),
            ("Mon Jan _2 3:04PM 06", "Thu Jan  2 3:04AM 20"),
            ("Monday, January 2 2006 .000 .999", "Thursday, January 2 2020 .120 .12"),
            ("002 __2 03 -0700 MST pm 4 5", "002   2 03 +0000 UTC am 4 5"),
            ("_2006 Month Jan1", "_2020 Month Jan1"),
        ] {
            assert_eq!(format(&time, layout), expected, "{layout}");
        }
        let berlin = time.within(TimeZone::get("Europe/Berlin").expect("a zone"));
        assert_eq!(format(&berlin, "15:04 -07:00 MST"), "04:04 +01:00 CET");
        assert_eq!(time.to_string(), "2020-01-02 03:04:05.12 +0000 UTC");
    }

    #[test]
    fn dates_are_read_by_example() {
        for (layout, text, expected) in [
            ("2006-01-02", "2020-01-02", "2020-01-02 00:00:00 +0000 UTC"),
            ("Jan 2, 2006 at 3:04pm", "Feb 29, 2020 at 1:05pm", "2020-02-29 13:05:00 +0000 UTC"),
            ("2006-01-02T15:04:05Z07:00", "2020-01-02T03:04:05.5+02:00", "2020-01-02 03:04:05.5 +0200 +0200"),
        ] {
            assert_eq!(parse(layout, text, &TimeZone::UTC).map(|time| time.to_string()), Ok(expected.to_owned()));
        }
        assert_eq!(
            parse("2006-01-02", "x", &TimeZone::UTC),
            Err(r#"parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#.to_owned())
        );
        assert_eq!(
            parse("2006-01-02", "2020-02-30", &TimeZone::UTC),
            Err(r#"parsing time "2020-02-30": day out of range"#.to_owned())
        );
    }
}
