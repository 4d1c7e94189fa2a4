//! Names of facts that analyses find: leaks, waste, growth, rules.

names! {
    // Leaks.
    VERDICT: Text, "`accumulation`: at least 80 percent of what is retained at the accumulation point is in many children of one class, in one chain, in one buffer, or in many similar threads or loaders; `holder`: it is above parts of different kinds. Of a dump `damaged`, `odd` or `healthy`";
    SENTENCE: Text, "the conclusion as a sentence, for people: can change in any version";
    HEADLINE: Text, "main finding in one line, for people: can change in any version";
    CONCLUSIONS: Records, "conclusions, largest retained size of the cause first";
    SUSPECTS: Texts, "conclusions of `leaks`, largest retained size of the cause first, for people";
    SUSPECT_RANKS: Integers, "rows that the conclusion is about, from 1; of class loaders those that are parts of it";
    ACCUMULATIONS: Integer, "number of rows whose verdict is `accumulation`, without those that retain less than 1 percent of all objects";
    ACCUMULATION_POINT: Record, "the object where the memory accumulates; in CSV its ID";
    ACCUMULATION_POINT_OBJECT: Id, "object ID of the object where the memory accumulates";
    ACCUMULATION_POINT_CLASS: Text, "class of that object";
    ACCUMULATED: Records, "what it consists of, from the accumulation point down the dominator tree, merged by class: on each level the class that retains most; in CSV in words";
    ACCUMULATED_BYTES: Integer, "bytes retained by the accumulation point, by the chain that leads to it, or by the group";
    HOW: Text, "how it accumulates: `children`, `chain`, `buffer`, `threads`, `loaders` or `members`";
    REASON: Record, "how it accumulates; in CSV the first word";
    CHAIN: Integer, "number of objects of the class that dominate one another, one after the other, at most";
    CHAIN_FIELD: Text, "field by which each object of a chain holds the next";
    RETAINED_PERCENT: Float, "retained size in percent of the reachable bytes";
    THRESHOLD_BYTES: Integer, "retained size that a suspect exceeds";
    PARTS: Records, "parts, most bytes first; in CSV in words";
    MEMBERS: Records, "of a group: the members that retain most, ten at most; in CSV their IDs";
    OWNER: Record, "the last object on the path whose class is not the JDK's; in CSV class and field";
    OWNER_CLASS: Text, "class of the owner";
    OWNER_FIELD: Text, "field of the owner that the path follows";
    IS_OWNER_STATIC: Boolean, "whether that field is static";
    COLLECTION: Record, "the collection that contains the accumulation point; in CSV its class";
    RELATED: Integers, "other rows, from 0, whose paths have a beginning in common outside the JDK";
    ALLOCATED_AT: Texts, "frames that allocated most of the objects, innermost first";
    ALLOCATION_SITE: Text, "the innermost frame outside the JDK that allocated most of the objects";
    ALLOCATED_CLASS: Text, "class of the objects whose allocation traces were examined";
    ALLOCATED_OBJECTS: Integer, "number of objects examined, at most 10,000";
    ALLOCATED_IN_TRACE: Integer, "number of these that have the most frequent trace";
    ALLOCATION_TRACE: Integer, "serial number of the most frequent trace";
    FACTS: Texts, "remarks in addition to the suspects, for people: can change in any version";
    POOL: Text, "name of the thread pool, with `*` for the numbers in which the threads' names differ";
    MAIN: Text, "main class of the program, or its archive";
    LARGEST: Records, "what retains most, five rows at most, largest first: the largest dominators, followed down while one object holds 70 percent of what is above it; or all objects of a class that only roots dominate; or many threads that do the same. In CSV bytes and text";
    ODD: Texts, "oddities, for people";
    NEXT: Records, "suggested next commands; in CSV without reasons";
    COMMAND: Text, "a command line";
    WHY: Text, "question that the command answers";
    FINALIZER_QUEUE: Integer, "number of objects that wait for the finalizer";
    OFF_HEAP: Record, "memory outside of the heap, each piece counted once; not what the JDK maps for itself";
    DIRECT_MEMORY: Record, "direct memory";
    DIRECT_BUFFERS: Integer, "number of direct ByteBuffers, without views";
    DIRECT_BYTES: Integer, "sum of their capacities";
    MAPPED_BUFFERS: Integer, "number of mapped files";
    MAPPED_BYTES: Integer, "sum of their sizes";
    RESERVED_BYTES: Integer, "bytes that `java.nio.Bits` counts as reserved";
    LIMIT_BYTES: Integer, "maximum number of bytes that it reserves";
    BUFFERS: Integer, "number of direct ByteBuffers, without views and mapped files";
    CAPACITY_BYTES: Integer, "sum of the buffers' capacities";
    OWNERS: Records, "owners of most of the thousand largest of both";
    KEEPER: Text, "what keeps the loader alive, in words: `a ThreadLocal`, `a JDBC driver`";
    HEAP_LIMIT_BYTES: Integer, "maximum heap size of the JVM (`-Xmx`), derived from its limit of direct memory";

    // Waste.
    WASTE: Record, "waste, as `waste` counts it";
    WASTED_BYTES: Integer, "bytes that would be freed if this were fixed; nothing counts twice in a total. In the overview of a heap of more than 1,048,576 reachable objects an estimate from a sample, which is mostly too low";
    ADDED_BYTES: Integer, "bytes that fixing this kind would free beyond all kinds before it, in the order of waste.md; they add up to `total.wasted_bytes`";
    KIND_BYTES: Integer, "shallow size of the objects of the kind";
    KIND_OBJECTS: Integer, "number of objects of the kind; the same in all its rows";
    KIND_WASTED_BYTES: Integer, "bytes wasted by the kind; the same in all its rows";
    KIND_ADDED_BYTES: Integer, "bytes that fixing the kind frees beyond the kinds before it; the same in all its rows";
    HEAP_PERCENT: Float, "wasted bytes in percent of the bytes of all objects";
    RATIO: Float, "fill ratio: elements by slots; of `colliding_maps`, entries after the first of their bucket by entries; of `constant_fields`, remaining bytes by all bytes";
    ADVICE: Text, "advice, for people";
    EXAMPLES: Records, "objects that would save most, five at most";
    EXAMPLE_OBJECT: Id, "one of the objects, a large one";
    IS_EXACT: Boolean, "whether the figures are exact, not estimated";
    IS_INCOMPLETE: Boolean, "whether there are more than were counted";
    COPIES: Integer, "number of equal objects";
    SAMPLED: Integer, "number of copies examined for `holders`, at most 64";

    // Comparisons.
    STATUS: Text, "`new`: only in the new file; `gone`: only in the old one; `changed`, `same`. Of a rule `passed`, `failed` or `error`";
    PLACE: Texts, "labels from the root: `static FIELD of CLASS`, `CLASS.FIELD`, a class, `{KEY}` of a map, `thread \"NAME\"`; a class that the next field names is left out";
    PLACE_NAME as "place": Text, "the labels of a place in one line, from the root, joined by ` -> `; of `places`";
    PLACE_TEXT: Text, "`place` in one line, with `{*}` for the keys of maps";
    PLACE_NUMBER: Integer, "number of the place in this dump, from 0";
    PARENT_PLACE_NUMBER: Integer, "number of the place above";
    KEYS: Text, "keys of maps in the place, as a JSON array";
    IS_NESTING: Boolean, "whether places of the same labels contain one another";
    MAP: Text, "the outermost map on the place whose keys are not shown, in one line";
    MAP_RETAINED_BYTES: Integer, "retained size of the maps at that place, with all that is in them";
    GROWTH_PERCENT: Float, "growth in percent of `all_grown_bytes`; negative if it shrank";
    ALL_GROWN_BYTES: Integer, "total growth, including growth that no place explains: growth of the reachable heap plus the shrinkage of all places that shrank; at least `grown_bytes`";
    GROWN_BYTES: Integer, "sum of the growth of all places that grew";
    GROWS: Text, "`every_step`; `stopped`: it grew, never shrank, and not in the last step; `varies`: anything else, if all rows are requested. A step counts if it is at least a twentieth of the average one";
    BYTES: Integer, "bytes at the place, or of the class";
    BYTES_PER_HOUR: Signed, "growth per hour between the dumps";
    HOURS: Float, "hours from the first dump to the last";
    VALUES_BY_DUMP: Integers, "bytes in each dump";
    OBJECTS_BY_DUMP: Integers, "number of objects in each dump";
    MIN_CHANGES: Record, "smallest changes that are shown";
    MIN_CHANGE_BYTES: Integer, "smallest change that is shown";
    EVERY_STEP_BYTES: Integer, "smallest growth in every step that is shown";
    OTHER_CHANGE_BYTES: Integer, "smallest change of another kind that is shown";
    STACK_STATUS: Text, "`same` if the threads have the same stacks in both dumps: class, method and line of each frame, numbers in names of generated classes excepted; else `other`";
    OLD: Record, "the old file";

    // Rules.
    RULE: Text, "name of the rule; `damaged` of a damaged dump, `unreadable` of one that cannot be read";
    RULES: Text, "the rules file, as given";
    SEVERITY: Text, "`note`: odd, but the file was read completely; `damage`: part of the dump is missing or unreadable. Of rules `error`, `warning` or `note`";
    IS_PASSED: Boolean, "whether the dump satisfies the rule";
    IS_MATCHED: Boolean, "whether a class or place matches the name in the rule; if not, the rule fails unless it is `optional`";
    LIMIT: Float, "the limit that is exceeded; if none is, `max`, or else `min`";
    BOUND: Text, "kind of `limit`: `max` or `min`";
    UNIT: Text, "unit of `value` and `limit`: `bytes`, `count` or `percent`";
    MESSAGE: Text, "the result as a sentence";
    BASELINE: Text, "the dump that growth is measured against";
    PASSED: Integer, "number of rows that passed";
    FAILED: Integer, "number of rows that failed, of any severity";
    ERRORS: Integer, "number of rows that could not be evaluated";
}
