//! Holders of class loaders that should have been freed, found on the path from a GC root to each loader.
//!
//! The paths to all loaders come from one search (`paths::forest`). The first known object on a path decides: a ThreadLocal's
//! entry below a thread, a table of the JDK in which programs must not leave entries (shutdown hooks, MBeans, JDBC drivers), a
//! thread, or else a static field.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_values::{ObjectId, names};

use hprof_base::naming::stable_names::stem;
use hprof_base::sorting::SortRows;
use hprof_model::generated_loaders::is_permanent;
use hprof_model::loaders::loader_sets::{RootPath, root_path_along};
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::object_set::Bits;
use hprof_model::objects::reader::ObjectReader;
use hprof_model::objects::strength::Exclusions;
use hprof_model::paths::forest::Forest;
use hprof_model::paths::steps::View;

/// Maximum number of loaders of a group whose holders are found, lowest IDs first.
const MAX_LOADERS: usize = 10_000;
/// Maximum number of objects of a path.
const MAX_PATH: usize = 1 << 22;
/// Number of objects on the paths of a group after which no further loader is examined.
const MAX_STEPS: usize = 1 << 22;
/// Number of objects on the paths of a group after which no further path is reported: long paths are similar.
const LONG_PATHS: usize = 1 << 14;
/// Maximum number of class objects on a path whose static fields are read.
const MAX_CLASSES: usize = 64;
/// Maximum number of loaders of a group whose paths are reported, lowest IDs first.
const TOLD_LOADERS: usize = 20;
/// Maximum number of names of a kind of holder that are reported.
const TOLD_NAMES: usize = 16;

/// Kind of holder of a class loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoaderHolderKind {
    /// A running thread: its context class loader, its fields or its stack.
    Thread,
    /// A value of a thread's ThreadLocal.
    ThreadLocal,
    /// A thread that runs when the JVM exits.
    ShutdownHook,
    /// A task of a timer, or its thread.
    Timer,
    /// A registered MBean.
    MBean,
    /// A driver of `java.sql.DriverManager`.
    JdbcDriver,
    /// A logger, its handler, or a level.
    Logger,
    /// A cached resource bundle.
    ResourceBundle,
    /// Cached information about a JavaBean.
    BeanInfo,
    /// An object that is exported by RMI.
    RmiObject,
    /// A provider of security services.
    SecurityProvider,
    /// An action of a cleaner.
    Cleaner,
    /// A protection domain of running code or of a stored object.
    ProtectionDomain,
    /// A static field of a class of another loader.
    StaticField,
    /// A GC root without any of the other holders on the path.
    Root,
}

impl LoaderHolderKind {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::ThreadLocal => "thread_local",
            Self::ShutdownHook => "shutdown_hook",
            Self::Timer => "timer",
            Self::MBean => "mbean",
            Self::JdbcDriver => "jdbc_driver",
            Self::Logger => "logger",
            Self::ResourceBundle => "resource_bundle",
            Self::BeanInfo => "bean_info",
            Self::RmiObject => "rmi_object",
            Self::SecurityProvider => "security_provider",
            Self::Cleaner => "cleaner",
            Self::ProtectionDomain => "protection_domain",
            Self::StaticField => "static_field",
            Self::Root => "root",
        }
    }
}

/// Kinds of holders, by a class on the path or the class in which that is nested.
const KINDS: &[(&str, LoaderHolderKind)] = &[
    ("java.lang.ThreadLocal$ThreadLocalMap", LoaderHolderKind::ThreadLocal),
    ("java.lang.ApplicationShutdownHooks", LoaderHolderKind::ShutdownHook),
    ("java.util.Timer", LoaderHolderKind::Timer),
    ("java.util.TimerThread", LoaderHolderKind::Timer),
    ("com.sun.jmx.interceptor.DefaultMBeanServerInterceptor", LoaderHolderKind::MBean),
    ("com.sun.jmx.mbeanserver.JmxMBeanServer", LoaderHolderKind::MBean),
    ("com.sun.jmx.mbeanserver.NamedObject", LoaderHolderKind::MBean),
    ("com.sun.jmx.mbeanserver.Repository", LoaderHolderKind::MBean),
    ("java.sql.DriverInfo", LoaderHolderKind::JdbcDriver),
    ("java.sql.DriverManager", LoaderHolderKind::JdbcDriver),
    ("java.util.logging.Level", LoaderHolderKind::Logger),
    ("java.util.logging.LogManager", LoaderHolderKind::Logger),
    ("java.util.logging.Logger", LoaderHolderKind::Logger),
    ("java.util.ResourceBundle", LoaderHolderKind::ResourceBundle),
    ("java.beans.Introspector", LoaderHolderKind::BeanInfo),
    ("java.beans.ThreadGroupContext", LoaderHolderKind::BeanInfo),
    ("com.sun.beans.introspect.ClassInfo", LoaderHolderKind::BeanInfo),
    ("sun.rmi.transport.ObjectTable", LoaderHolderKind::RmiObject),
    ("sun.rmi.transport.Target", LoaderHolderKind::RmiObject),
    ("java.security.Provider", LoaderHolderKind::SecurityProvider),
    ("sun.security.jca.ProviderList", LoaderHolderKind::SecurityProvider),
    ("sun.security.jca.Providers", LoaderHolderKind::SecurityProvider),
    ("jdk.internal.ref.Cleaner", LoaderHolderKind::Cleaner),
    ("jdk.internal.ref.CleanerImpl", LoaderHolderKind::Cleaner),
    ("jdk.internal.ref.PhantomCleanable", LoaderHolderKind::Cleaner),
    ("sun.misc.Cleaner", LoaderHolderKind::Cleaner),
];
const PROTECTION_DOMAIN: &str = "java.security.ProtectionDomain";
const NAMED_OBJECT: &str = "com.sun.jmx.mbeanserver.NamedObject";

/// Holders of one kind for the class loaders of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderHolder {
    /// Kind of the holders.
    pub kind: LoaderHolderKind,
    /// Number of loaders that the holders keep alive.
    pub loaders: u64,
    /// First names of the holders: threads, classes of hooks, MBeans, static fields.
    pub names: Vec<String>,
    /// Number of distinct names.
    pub name_count: u64,
    /// One of the loaders, and the path to it.
    pub example: Option<(ObjectId, RootPath)>,
}

/// Holders of the class loaders of a group, and paths to the loaders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoaderHolders {
    /// Holders by kind; kinds that hold the most loaders first.
    pub holders: Vec<LoaderHolder>,
    /// Paths to the first loaders, with the kind of holder on each.
    pub paths: Vec<(ObjectId, LoaderHolderKind, RootPath)>,
}

/// Holders of one kind while they are counted.
struct CountedHolders {
    kind: LoaderHolderKind,
    loaders: u64,
    names: BTreeSet<String>,
    example: ObjectId,
}

/// Finds the holders of the loaders of each group.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object.
pub(super) fn loader_holders(view: &View<'_>, groups: &[&[ObjectId]]) -> io::Result<Vec<LoaderHolders>> {
    let search = LoaderPaths::find(view, groups)?;
    Ok(groups.iter().map(|loaders| search.holders(loaders)).collect())
}

/// Search for paths to class loaders.
struct LoaderPaths<'v, 'a> {
    view: &'v View<'a>,
    objects: ObjectReader<'a>,
    /// Searches over strong references, then, for loaders that these do not reach, over all references.
    forests: Vec<Forest>,
    threads: ClassSet,
    /// Name of the static field, by class object and the object that the field holds.
    static_fields: RefCell<FxHashMap<(ObjectIndex, ObjectIndex), Option<String>>>,
}

impl<'v, 'a> LoaderPaths<'v, 'a> {
    fn find(view: &'v View<'a>, groups: &[&[ObjectId]]) -> io::Result<Self> {
        let graph = view.edges.dump.graph;
        let loaders = groups.iter().flat_map(|loaders| loaders.iter().take(MAX_LOADERS));
        let loaders = loaders.filter_map(|loader| graph.objects.addresses.index_of(*loader));
        let is_reachable = |loader: &ObjectIndex| graph.tree.reachable_position(*loader).is_some();
        let mut open: Vec<ObjectIndex> = loaders.filter(is_reachable).collect();
        let edges = &view.edges;
        let threads = ClassSet::of_name_and_below(edges.dump.summary, "java.lang.Thread");
        let objects = edges.dump.objects;
        let static_fields = RefCell::default();
        let mut found = Self { view, objects, forests: Vec::new(), threads, static_fields };
        let room = graph.room();
        for excluded in [Exclusions::all_but_strong(), Exclusions::NONE] {
            if open.is_empty() {
                break;
            }
            let mut sought = Bits::new(graph.objects.len());
            let wanted = open.iter().filter(|loader| sought.insert(**loader)).count() as u64;
            found.forests.push(Forest::grow(&room, edges, &sought, wanted, excluded)?);
            open.retain(|loader| found.forests.last().is_some_and(|forest| !forest.reaches(*loader)));
        }
        Ok(found)
    }

    /// Returns the objects from a root to a loader.
    fn path(&self, loader: ObjectIndex) -> Option<Vec<ObjectIndex>> {
        let forest = self.forests.iter().find(|forest| forest.reaches(loader))?;
        let up = std::iter::successors(Some(loader), |object| forest.holder(*object));
        let mut path: Vec<ObjectIndex> = up.take(MAX_PATH + 1).collect();
        path.reverse();
        Some(path).filter(|path| path.len() <= MAX_PATH)
    }

    fn root_path(&self, id: ObjectId) -> Option<RootPath> {
        let loader = self.view.edges.dump.graph.objects.addresses.index_of(id)?;
        root_path_along(self.view, &self.path(loader)?)
    }

    fn holders(&self, loaders: &[ObjectId]) -> LoaderHolders {
        let mut found = LoaderHolders::default();
        let mut counted: Vec<CountedHolders> = Vec::new();
        let mut steps = 0;
        for id in loaders.iter().take(MAX_LOADERS) {
            let loader = self.view.edges.dump.graph.objects.addresses.index_of(*id);
            let Some(path) = loader.and_then(|loader| self.path(loader)) else { continue };
            let (kind, name) = self.holder(&path);
            if found.paths.len() < TOLD_LOADERS && steps < LONG_PATHS {
                found.paths.extend(root_path_along(self.view, &path).map(|why| (*id, kind, why)));
            }
            steps += path.len();
            match counted.iter_mut().find(|of| of.kind == kind) {
                Some(of) => of.add(name),
                None => {
                    let mut of = CountedHolders { kind, loaders: 0, names: BTreeSet::new(), example: *id };
                    of.add(name);
                    counted.push(of);
                }
            }
            if steps > MAX_STEPS {
                break;
            }
        }
        // The sort is stable: kinds with the same count remain in the order of the loaders.
        counted.sort_rows_by_key(|of| Reverse(of.loaders));
        let holder = |of: CountedHolders| LoaderHolder {
            kind: of.kind,
            loaders: of.loaders,
            name_count: of.names.len() as u64,
            names: of.names.into_iter().take(TOLD_NAMES).collect(),
            example: self.root_path(of.example).map(|why| (of.example, why)),
        };
        found.holders = counted.into_iter().map(holder).collect();
        found
    }

    /// Returns the kind and the name of the holder on a path.
    fn holder(&self, path: &[ObjectIndex]) -> (LoaderHolderKind, Option<String>) {
        let known =
            path.iter().enumerate().find_map(|(at, object)| Some((at, kind_of(self.class(*object)?)?)));
        if let Some((at, kind)) = known {
            let (to, from) = path.split_at(at);
            let name = match kind {
                LoaderHolderKind::ThreadLocal => to
                    .iter()
                    .rev()
                    .find(|object| self.is_thread(**object))
                    .and_then(|of| self.view.label(*of)),
                LoaderHolderKind::ShutdownHook => self.hook(from),
                LoaderHolderKind::MBean => self.mbean(from),
                _ => self.own_class(from),
            };
            return (kind, name);
        }
        let thread = path.first().filter(|root| self.is_thread(**root));
        if let Some(thread) = thread {
            return (LoaderHolderKind::Thread, self.view.label(*thread));
        }
        let is_local = |root: &&ObjectIndex| self.view.edges.roots.of_object(**root).all(GcRoot::is_of_stack);
        if let Some(local) = path.first().filter(is_local) {
            let thread = self.view.start(*local, Exclusions::all_but_strong()).thread;
            return (LoaderHolderKind::Thread, thread.and_then(|thread| thread.name));
        }
        if path.iter().any(|object| self.class(*object) == Some(PROTECTION_DOMAIN)) {
            return (LoaderHolderKind::ProtectionDomain, None);
        }
        match self.static_field(path) {
            Some(field) => (LoaderHolderKind::StaticField, Some(field)),
            None => (LoaderHolderKind::Root, None),
        }
    }

    /// Returns the name of an object's class; for a class object, of the represented class.
    fn class(&self, object: ObjectIndex) -> Option<&'a str> {
        let edges = &self.view.edges;
        let class = edges.class_of_class_object(object).or_else(|| edges.dump.graph.objects.class(object))?;
        edges.dump.summary.class(class).map(|row| edges.dump.summary.class_name(row))
    }

    fn is_thread(&self, object: ObjectIndex) -> bool {
        self.view.edges.dump.graph.objects.class(object).is_some_and(|class| self.threads.contains(class))
    }

    /// Returns the class of a shutdown hook: the class of the thread, or of its task if the thread is a plain `Thread`.
    fn hook(&self, path: &[ObjectIndex]) -> Option<String> {
        let thread = *path.iter().find(|object| self.is_thread(**object))?;
        let objects = &self.objects;
        let holder =
            || objects.reference(thread, "holder").and_then(|holder| objects.reference(holder, "task"));
        let target = || objects.reference(thread, "target").or_else(holder);
        let class = match self.class(thread)? {
            "java.lang.Thread" => {
                target().and_then(|target| self.class(target)).unwrap_or("java.lang.Thread")
            }
            class => class,
        };
        Some(stem(class).into_owned())
    }

    /// Returns the object name of an MBean.
    fn mbean(&self, path: &[ObjectIndex]) -> Option<String> {
        let named = path.iter().find(|object| self.class(**object) == Some(NAMED_OBJECT));
        let objects = &self.objects;
        let name = named.and_then(|named| objects.reference(*named, "name"));
        let name = name.and_then(|name| {
            let text = objects.reference(name, "_canonicalName");
            text.and_then(|text| self.view.label(text)).or_else(|| self.view.label(name))
        });
        name.or_else(|| self.own_class(path))
    }

    /// Returns the first class on a path that is not in the JDK.
    fn own_class(&self, path: &[ObjectIndex]) -> Option<String> {
        let classes = path.iter().filter_map(|object| self.class(*object));
        let own = classes.map(|class| class.trim_end_matches("[]")).find(|class| !names::is_of_jdk(class))?;
        Some(stem(own).into_owned())
    }

    /// Returns the last static field on a path whose class has a loader that lives as long as the process; if there is none,
    /// the first static field.
    fn static_field(&self, path: &[ObjectIndex]) -> Option<String> {
        let (edges, mut first) = (&self.view.edges, None);
        let class = |holder: ObjectIndex| edges.dump.summary.class(edges.class_of_class_object(holder)?);
        let pairs = path.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).rev();
        let of_classes = pairs.filter_map(|(holder, held)| Some((holder, held, class(holder)?)));
        for (holder, held, class) in of_classes.take(MAX_CLASSES) {
            // The paths of many loaders have common prefixes.
            let mut known = self.static_fields.borrow_mut();
            let field = known.entry((holder, held)).or_insert_with(|| {
                let holding = edges.holding(holder, held);
                let name = edges.dump.summary.class_name(class);
                holding.is_static().then(|| format!("{name}.{holding}"))
            });
            if field.is_some() {
                first.clone_from(field);
                if is_permanent(edges.dump.summary, class.loader.into()) {
                    break;
                }
            }
        }
        first
    }
}

impl CountedHolders {
    fn add(&mut self, name: Option<String>) {
        self.loaders += 1;
        self.names.extend(name);
    }
}

fn kind_of(class: &str) -> Option<LoaderHolderKind> {
    let is_it =
        |of: &str| class.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('$'));
    KINDS.iter().find(|(of, _)| is_it(of)).map(|(_, kind)| *kind)
}
