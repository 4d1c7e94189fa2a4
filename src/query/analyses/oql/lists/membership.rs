//! `IN`: whether a list, or the result of a query, contains a value.

use std::io;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch_table::KeyTable;

use crate::oql::code::QuerySet;
use crate::oql::evaluate::{Evaluator, MAX_SEARCHED, character};
use crate::oql::tree::Comparison;
use crate::oql::value::{ExpressionValue, GroupKey};

impl Evaluator<'_, '_> {
    pub(in crate::oql) fn is_among(&self, value: &ExpressionValue, among: &ExpressionValue) -> bool {
        let is_same = |item: &ExpressionValue| match (value, item) {
            // A number may also be an object index.
            (ExpressionValue::Whole(number), ExpressionValue::Object(object)) => {
                self.object_of_number(*number) == Some(*object)
            }
            _ => self.compares(value, Comparison::Equal, item),
        };
        match among {
            among if among.is_listed() => {
                let mut items = self.items_of(among).into_iter().flatten().take(MAX_SEARCHED);
                items.any(|item| is_same(&item))
            }
            among => is_same(among),
        }
    }

    /// Adds a value to a set for `IN`; of a list, its elements.
    pub(in crate::oql) fn find(&self, found: &mut QuerySet, value: ExpressionValue) -> io::Result<()> {
        match value {
            value if value.is_listed() => {
                let items = self.items_of(&value).into_iter().flatten().take(MAX_SEARCHED);
                items.into_iter().try_for_each(|item| self.find_one(found, &item))
            }
            value => self.find_one(found, &value),
        }
    }

    fn find_one(&self, found: &mut QuerySet, value: &ExpressionValue) -> io::Result<()> {
        match value {
            ExpressionValue::Null => {}
            ExpressionValue::Object(object) => {
                found.objects.insert(object.0);
            }
            value => {
                found.values.insert(self.kept.hash(&value.key()), 0)?;
            }
        }
        Ok(())
    }

    /// Returns the hashes of the texts of the Strings in a set.
    fn texts_of(&self, found: &QuerySet) -> KeyTable {
        let mut texts = KeyTable::new(self.kept.room(self.dump.graph));
        let all = found.objects.iter().filter_map(|object| self.string(ObjectIndex(object)));
        let inserted =
            all.map(|text| self.kept.hash(&*text)).try_for_each(|key| texts.insert(key, 0).map(drop));
        if let Err(error) = inserted {
            self.kept.record_error(&error);
        }
        texts
    }

    /// Returns whether a set for `IN` contains a value, by the same rules as a list.
    pub(in crate::oql) fn is_found(&self, value: &ExpressionValue, found: &QuerySet) -> bool {
        let says = |text: &str| {
            let texts = found.texts.get_or_init(|| self.texts_of(found));
            texts.get(self.kept.hash(text)).is_some()
        };
        let is_object = match value {
            _ if found.objects.is_empty() => false,
            ExpressionValue::Object(object) => found.objects.contains(object.0),
            ExpressionValue::Whole(number) => {
                self.object_of_number(*number).is_some_and(|object| found.objects.contains(object.0))
            }
            ExpressionValue::Text(text) => says(text),
            ExpressionValue::Char(unit) => says(&character(*unit)),
            _ => false,
        };
        is_object || self.is_in(value, &found.values)
    }

    /// Returns whether a set of hashes contains a value.
    fn is_in(&self, value: &ExpressionValue, values: &KeyTable) -> bool {
        if values.is_empty() {
            return false;
        }
        let has = |key: &GroupKey| values.get(self.kept.hash(key)).is_some();
        let has_text = |text: &str| {
            let mut units = text.encode_utf16();
            let unit = units.next().filter(|_| units.next().is_none());
            unit.is_some_and(|unit| has(&GroupKey::Char(unit))) || has(&GroupKey::Text(text.into()))
        };
        let has_char = |number: i64| u16::try_from(number).is_ok_and(|unit| has(&GroupKey::Char(unit)));
        match value {
            ExpressionValue::Char(unit) => {
                has(&GroupKey::Char(*unit))
                    || has(&GroupKey::Whole((*unit).into()))
                    || has_text(&character(*unit))
            }
            ExpressionValue::Text(text) => has_text(text),
            ExpressionValue::Object(object) => {
                has(&GroupKey::Object(*object))
                    || has(&self.address(*object).key())
                    || self.string(*object).is_some_and(|text| has_text(&text))
            }
            value => {
                let key = value.key();
                matches!(key, GroupKey::Whole(number) if has_char(number))
                    || (has(&key) && !matches!(key, GroupKey::Double(bits) if f64::from_bits(bits).is_nan()))
            }
        }
    }
}
