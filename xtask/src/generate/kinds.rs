//! The kinds that drydock serves.

use jobwright_drydock::kinds;

/// A table of the built-in kinds.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Kinds that drydock serves\n\nGenerated from the code by `cargo xtask generate`. \
         CustomResourceDefinitions add others.\n\n\
         | API version | kind | resource | short names | namespaced | subresources |\n|---|---|---|---|---|---|\n",
    );
    for kind in kinds() {
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            kind.api_version(),
            kind.kind,
            kind.plural,
            kind.short_names.join(", "),
            if kind.namespaced { "yes" } else { "no" },
            kind.subresources.join(", "),
        ));
    }
    page
}
