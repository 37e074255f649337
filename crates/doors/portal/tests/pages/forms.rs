//! The fields of a form in a page, as a browser would send them.

/// A form that was shown, to be filled in and sent.
#[derive(Clone, Debug)]
pub struct Sent(pub Vec<(String, String)>);

impl Sent {
    /// The form whose start tag holds this text.
    #[track_caller]
    pub fn of(page: &str, mark: &str) -> Self {
        let at = page.find(mark).unwrap_or_else(|| panic!("no form with `{mark}` in {page}"));
        let start = page[..at].rfind("<form").expect("the form's start");
        let body = &page[start..start + page[start..].find("</form>").expect("the form's end")];
        let mut fields = Vec::new();
        let mut rest = body;
        while let Some(open) = rest.find('<') {
            rest = &rest[open + 1..];
            let end = tag_end(rest);
            let tag = &rest[..end];
            let (name, value) = (attribute(tag, "name"), attribute(tag, "value"));
            let inner = &rest[end + 1..];

            match (tag.split(' ').next().unwrap_or_default(), name) {
                ("input", Some(name)) => {
                    let is_choice = attribute(tag, "type")
                        .is_some_and(|kind| kind == "radio" || kind == "checkbox");
                    if !is_choice || tag.contains(" checked") {
                        fields.push((name, value.unwrap_or_default()));
                    }
                }
                ("textarea", Some(name)) => {
                    fields
                        .push((name, plain(&inner[..inner.find("</textarea>").expect("an end")])));
                }
                ("select", Some(name)) => {
                    let options = &inner[..inner.find("</select>").expect("an end")];
                    let chosen = options
                        .find(" selected")
                        .map(|at| options[..at].rfind("<option").expect("an option"));
                    let option = &options
                        [chosen.or_else(|| options.find("<option")).expect("an option") + 1..];

                    fields.push((
                        name,
                        attribute(&option[..tag_end(option)], "value").unwrap_or_default(),
                    ));
                }
                _ => {}
            }
        }

        Self(fields)
    }

    /// Types into a field that the form has.
    #[track_caller]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        let field = self.0.iter_mut().find(|(known, _)| known == name);
        field.unwrap_or_else(|| panic!("the form has no field {name}")).1 = value.to_owned();
        self
    }

    /// Presses a button with a name and a value.
    pub fn press(mut self, value: &str) -> Self {
        self.0.push(("do".to_owned(), value.to_owned()));
        self
    }

    #[track_caller]
    pub fn get(&self, name: &str) -> &str {
        &self
            .0
            .iter()
            .find(|(known, _)| known == name)
            .unwrap_or_else(|| panic!("the form has no field {name}"))
            .1
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.0
            .iter()
            .filter(|(name, _)| name != "csrf")
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }
}

/// Where a tag ends: at a `>` that stands in no quotes.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    tag.find(|char| {
        quoted ^= char == '"';
        char == '>' && !quoted
    })
    .expect("a tag has an end")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next().map(plain)
}

/// Text without the escapes of HTML.
pub fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
