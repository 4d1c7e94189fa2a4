//! Assembler of small class files, written from the specification. It shares no code with the rewriter.

/// Class file of a class `Made` that extends `java/lang/Object`.
pub(crate) struct Class {
    major: u16,
    constants: Vec<Vec<u8>>,
    methods: Vec<Vec<u8>>,
}

/// Contents of a `Code` attribute, except the instructions.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) code: Vec<u8>,
    /// Exception handlers: start, end, handler, type.
    pub(crate) handlers: Vec<[u16; 4]>,
    /// Attributes: name, and content including its count.
    pub(crate) attributes: Vec<(&'static str, Vec<u8>)>,
}

impl Class {
    pub(crate) fn new(major: u16) -> Class {
        let mut class = Class { major, constants: Vec::new(), methods: Vec::new() };
        // Constants 1 to 4: names and classes.
        class.class("Made");
        class.class("java/lang/Object");
        class
    }

    fn constant(&mut self, bytes: Vec<u8>) -> u16 {
        self.constants.push(bytes);
        self.constants.len() as u16
    }

    pub(crate) fn utf8(&mut self, text: &str) -> u16 {
        let mut bytes = vec![1];
        bytes.extend((text.len() as u16).to_be_bytes());
        bytes.extend(text.as_bytes());
        self.constant(bytes)
    }

    pub(crate) fn class(&mut self, name: &str) -> u16 {
        let [high, low] = self.utf8(name).to_be_bytes();
        self.constant(vec![7, high, low])
    }

    pub(crate) fn method(&mut self, access: u16, name: &str, descriptor: &str, code: Option<Code>) {
        let mut bytes = Vec::new();
        let name = self.utf8(name);
        let descriptor = self.utf8(descriptor);
        for part in [access, name, descriptor, u16::from(code.is_some())] {
            bytes.extend(part.to_be_bytes());
        }
        if let Some(code) = code {
            bytes.extend(self.utf8("Code").to_be_bytes());
            let mut content = Vec::new();
            content.extend(code.max_stack.to_be_bytes());
            content.extend(code.max_locals.to_be_bytes());
            content.extend((code.code.len() as u32).to_be_bytes());
            content.extend(&code.code);
            content.extend((code.handlers.len() as u16).to_be_bytes());
            content.extend(code.handlers.iter().flatten().flat_map(|part| part.to_be_bytes()));
            content.extend((code.attributes.len() as u16).to_be_bytes());
            for (name, bytes) in code.attributes {
                content.extend(self.utf8(name).to_be_bytes());
                content.extend((bytes.len() as u32).to_be_bytes());
                content.extend(bytes);
            }
            bytes.extend((content.len() as u32).to_be_bytes());
            bytes.extend(content);
        }
        self.methods.push(bytes);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, if self.major == 45 { 3 } else { 0 }];
        bytes.extend(self.major.to_be_bytes());
        bytes.extend((self.constants.len() as u16 + 1).to_be_bytes());
        bytes.extend(self.constants.iter().flatten());
        for part in [0x0021, 2, 4, 0, 0, self.methods.len() as u16] {
            bytes.extend(u16::to_be_bytes(part));
        }
        bytes.extend(self.methods.iter().flatten());
        bytes.extend([0, 0]);
        bytes
    }
}
