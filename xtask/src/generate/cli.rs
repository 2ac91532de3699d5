//! The reference of the command line.

use clap::Command;

/// One section for each command, with its help.
pub(super) fn page() -> String {
    let mut page = String::from("# Command line\n\nGenerated from the code by `cargo xtask generate`.\n");
    let mut command = jobwright::command().term_width(100);
    command.build();
    section(&mut command, "jobwright", 2, &mut page);
    page
}

fn section(command: &mut Command, name: &str, level: usize, page: &mut String) {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), help.join("\n").trim_end()));
    for below in command.get_subcommands_mut() {
        let name = format!("{name} {}", below.get_name());
        section(below, &name, level + 1, page);
    }
}
