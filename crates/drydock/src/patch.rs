pub(crate) mod json {
    use crate::status::Status;
    use serde_json::Value;
    pub(crate) fn apply(_: &mut Value, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
pub(crate) mod merge {
    use serde_json::Value;
    pub(crate) fn apply(d: &mut Value, p: &Value) {
        if let (Value::Object(d), Value::Object(p)) = (&mut *d, p) {
            for (k, v) in p {
                if v.is_null() {
                    d.remove(k);
                } else {
                    apply(d.entry(k.clone()).or_insert(Value::Null), v);
                }
            }
        } else {
            *d = p.clone();
        }
    }
}
pub(crate) mod strategic {
    use crate::status::Status;
    use serde_json::Value;
    pub(crate) fn apply(_: crate::schema::View<'_>, d: &mut Value, p: &Value) -> Result<(), Status> {
        super::merge::apply(d, p);
        Ok(())
    }
}
pub(crate) mod managers {
    use crate::object::Object;
    pub(crate) struct Manager {
        pub(crate) name: String,
        pub(crate) api_version: String,
        pub(crate) subresource: String,
    }
    pub(crate) fn track_update(
        _: crate::schema::View<'_>,
        _: Option<&Object>,
        _: &mut Object,
        _: &Manager,
        _: jiff::Timestamp,
    ) {
    }
}
