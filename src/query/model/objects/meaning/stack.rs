//! Stack trace of a Throwable.

use hprof_index::graph::numbers::ObjectIndex;

use super::text::Text;
use super::{Fields, MAX_STEPS, Meanings};

/// Stack of a Throwable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThrowableStack {
    /// Frames, innermost first: `com.acme.Main.run(Main.java:5)`, or only the class.
    pub frames: Vec<String>,
    /// `true` if only classes are available: the program never requested the stack, and the JVM stores methods as
    /// numbers.
    pub classes_only: bool,
    /// Number of omitted frames.
    pub more: u64,
}

/// Maximum number of characters of a frame.
const LONGEST: usize = 1000;
/// Maximum number of arrays of frames read. HotSpot stores frames in arrays of a fixed size, each with a reference to
/// the next.
const MAX_CHUNKS: usize = 1 << 10;

impl<'a> Meanings<'a> {
    /// Returns the stack of a Throwable, up to this many frames; `None` if the object is not a Throwable, or has no
    /// stack.
    pub fn stack(&self, object: ObjectIndex, most: usize) -> Option<ThrowableStack> {
        let (_, fields) = self.read_method(self.objects.fields(object)?)?;
        if self.class_name(fields.class())? != "java.lang.Throwable" {
            return None;
        }
        self.elements(fields, most).or_else(|| self.backtrace(fields, most))
    }

    /// Reads the elements that `getStackTrace` returned.
    fn elements(&self, fields: Fields<'a>, most: usize) -> Option<ThrowableStack> {
        let ids = self.objects.ids(self.object(fields, "stackTrace")?)?;
        let count = ids.len();
        let frames = ids.take(most).map(|id| {
            let mut text = Text::new(LONGEST, true);
            let element = self.objects.graph.objects.addresses.index_of(id);
            let _ = element.and_then(|element| self.append(&mut text, element, MAX_STEPS));
            if text.is_empty() { "?".to_owned() } else { text.into_short() }
        });
        let frames: Vec<String> = frames.collect();
        let more = (count - frames.len()) as u64;
        (!frames.is_empty()).then_some(ThrowableStack { frames, classes_only: false, more })
    }

    /// Reads what HotSpot stores until the stack is requested: chunks with methods, lines, class objects and the next
    /// chunk.
    fn backtrace(&self, fields: Fields<'a>, most: usize) -> Option<ThrowableStack> {
        let mut stack = ThrowableStack { classes_only: true, ..ThrowableStack::default() };
        let mut chunk = self.object(fields, "backtrace");
        for _ in 0..MAX_CHUNKS {
            let Some(parts) = chunk.and_then(|chunk| self.objects.ids(chunk)) else { break };
            let parts: Vec<Option<ObjectIndex>> =
                parts.take(8).map(|id| self.objects.graph.objects.addresses.index_of(id)).collect();
            let part = |at: usize| parts.get(at).copied().flatten();
            let classes = part(2).and_then(|classes| self.objects.ids(classes));
            for id in classes.into_iter().flatten().take_while(|id| !id.is_null()) {
                if stack.frames.len() >= most {
                    stack.more = stack.more.saturating_add(1);
                    continue;
                }
                let class = self.objects.graph.objects.addresses.index_of(id);
                let class = class.and_then(|class| self.objects.graph.class_of_class_object(class));
                let name = class.and_then(|class| self.class_name(class));
                stack.frames.push(name.unwrap_or("?").to_owned());
            }
            chunk = part(4);
        }
        (!stack.frames.is_empty()).then_some(stack)
    }
}
