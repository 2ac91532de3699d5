//! What is wrong in a file, shown where it stands.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use jobwright_release::Findings;

/// Shows everything that is wrong in a file.
pub(crate) fn show(findings: &Findings, is_error: bool) {
    super::note(&render(findings, is_error));
}

fn render(findings: &Findings, is_error: bool) -> String {
    let path = findings.file.display().to_string();
    let renderer = Renderer::styled();
    let one = |finding: &jobwright_release::Finding| {
        let level = if is_error { Level::ERROR } else { Level::WARNING };
        let span = finding.span.start..finding.span.end.max(finding.span.start);
        let snippet = Snippet::source(&findings.text).path(&path).annotation(AnnotationKind::Primary.span(span));
        let mut group = level.primary_title(&finding.message).element(snippet);
        if let Some(help) = &finding.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    };
    findings.findings.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobwright_release::PlanFile;
    use std::path::Path;

    #[test]
    fn a_finding_shows_its_place_and_its_remedy() {
        let text =
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {name: shop, namespace: shop}\nparalel: 4\n";
        let findings = PlanFile::parse(Path::new("jobwright.yaml"), text).unwrap_err();
        let shown = anstream::adapter::strip_str(&render(&findings, true)).to_string();
        insta::assert_snapshot!(shown, @r"
        error: unknown field `paralel`
         --> jobwright.yaml:4:1
          |
        4 | paralel: 4
          | ^^^^^^^
          |
          = help: did you mean `parallel`?
        ");
    }
}
