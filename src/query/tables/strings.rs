//! The table `strings`.

use hprof_index::DumpGraph;
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::object_chunks;
use super::of_classes::OfClasses;
use super::{
    Batch, Column, ColumnSet, Definition, Lookup, Operator, Table, TableChunk, TableContext, TableQuery,
};
use hprof_base::dictionary::names;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::fields::Fields;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::hiding;
use hprof_model::objects::reader::{Characters, ObjectRecord};
use hprof_model::strings::TextKey;

const ID: usize = 0;
const TEXT: usize = 1;
const LENGTH: usize = 2;
const HASH: usize = 3;
const ARRAY: usize = 4;
const ARRAY_BYTES: usize = 5;

/// Maximum number of characters of a text; `length` is not limited. Many Strings may share one long array, and the
/// texts of a malicious dump would be many times its size.
const MAX_TEXT: usize = 1 << 20;
/// Minimum number of characters of an array whose hash is cached while a chunk is read: several Strings may share the array.
const LONG: usize = 1 << 12;
/// Maximum number of characters hashed in a chunk.
const MAX_HASHED: usize = 1 << 32;

/// Hashes of the Strings of a chunk, within a limit on the characters read.
struct Hashes {
    key: TextKey,
    /// Hashes of long texts by memory address, length and width of the characters.
    of_long: FxHashMap<(usize, usize, bool), i64>,
    /// Number of characters that may still be hashed.
    left: usize,
}

impl Hashes {
    /// Returns the hash of a text; `None` if the limit is reached.
    fn get(&mut self, characters: &Characters<'_>) -> Option<i64> {
        let (bytes, is_wide) = match characters {
            Characters::Latin1(bytes) => (bytes, false),
            Characters::Utf16Le(bytes) | Characters::Utf16Be(bytes) => (bytes, true),
            Characters::Removed(_) => return None,
        };
        let mut hash = || {
            self.left = self.left.checked_sub(characters.len())?;
            Some(self.key.hash(characters).cast_signed())
        };
        if characters.len() < LONG {
            return hash();
        }
        let place = (bytes.as_ptr().addr(), bytes.len(), is_wide);
        if let Some(known) = self.of_long.get(&place) {
            return Some(*known);
        }
        let hash = hash()?;
        self.of_long.insert(place, hash);
        Some(hash)
    }
}

/// Table with a row for each String.
pub(super) struct Strings<'a> {
    objects: OfClasses<'a>,
    definition: Definition,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let none = "the characters are not in the dump";
    let hidden = "the characters are not in the dump, or values are hidden";
    Definition {
        name: "strings".into(),
        meaning: "An instance of java.lang.String".into(),
        order: "by object ID".into(),
        columns: vec![
            Column::new(names::OBJECT),
            Column::new(names::TEXT).or_null(none).secret(),
            Column::new(names::LENGTH).or_null(none),
            Column::new(names::HASH).or_null(hidden),
            Column::new(names::ARRAY).or_null("the String has no array"),
            Column::new(names::ARRAY_BYTES).or_null("the array is not in the dump"),
        ],
    }
}

impl<'a> Strings<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        let summary = context.dump.summary;
        let named = summary
            .numbered_classes()
            .filter(|(_, class)| class.is_dumped() && summary.is_named(class, "java.lang.String"));
        let classes: Vec<_> = named.map(|(number, _)| number).collect();
        let classes = ClassSet::from_classes(summary, &classes);
        Self { objects: OfClasses { context, classes }, definition: definition() }
    }

    fn add(
        &self,
        object: ObjectIndex,
        record: Option<ObjectRecord<'_>>,
        wanted: ColumnSet,
        hashes: &mut Hashes,
        batch: &mut Batch,
    ) {
        let context = &*self.objects.context;
        let (DumpGraph { summary, graph, .. }, objects) = (*context.dump, &context.dump.objects);
        let fields = match (record, graph.objects.class(object)) {
            (Some(ObjectRecord::Instance(instance)), Some(class)) => {
                Some(Fields::new(summary, class, instance.fields))
            }
            _ => None,
        };
        batch.rows += 1;
        batch.row_numbers.push(object.0.into());
        batch.column(ID).id(context.id(object));
        if wanted.has(TEXT) || wanted.has(LENGTH) || wanted.has(HASH) {
            let characters = fields.and_then(|fields| objects.characters(&fields));
            batch.column(LENGTH).count(characters.map(|characters| characters.len() as u64));
            if wanted.has(HASH) {
                // A hash would confirm a guessed text.
                let characters = characters.filter(|_| !summary.hides_values());
                let hash = characters.and_then(|characters| hashes.get(&characters));
                batch.column(HASH).integer(hash);
            }
            if wanted.has(TEXT) {
                match characters {
                    None => batch.column(TEXT).text(None),
                    Some(characters) if summary.hides_values() => {
                        batch.column(TEXT).text(Some(&hiding::mask_text(&characters)));
                    }
                    // Most are ASCII, which needs no decoding.
                    Some(Characters::Latin1(bytes)) if bytes.len() <= MAX_TEXT && bytes.is_ascii() => {
                        batch.column(TEXT).text(str::from_utf8(bytes).ok());
                    }
                    Some(characters) => batch.column(TEXT).text(Some(&characters.text(MAX_TEXT))),
                }
            }
        }
        if wanted.has(ARRAY) || wanted.has(ARRAY_BYTES) {
            let array = fields.and_then(|fields| fields.reference("value"));
            batch.column(ARRAY).id(array);
            let position = array
                .and_then(|id| graph.objects.addresses.index_of(id))
                .and_then(|array| graph.tree.position(array));
            batch.column(ARRAY_BYTES).count(position.map(|position| graph.tree.shallow_bytes(position)));
        }
    }
}

impl Table for Strings<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.objects.rows()
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![Lookup { column: ID, operator: Operator::Equal, rows: 1.0 }]
    }

    fn orders(&self) -> Vec<usize> {
        self.objects.orders(ID)
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        Ok(match question {
            TableQuery::Of(_, _, key) => object_chunks::of_id(&self.objects.context, key),
            _ => object_chunks::all_texts(&self.objects.context),
        })
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let key = self.objects.context.about.text_key;
        let mut hashes = Hashes { key, of_long: FxHashMap::default(), left: MAX_HASHED };
        self.objects.each_record(chunk, |object, record| {
            self.add(object, record, wanted, &mut hashes, batch);
        });
        Ok(())
    }
}
