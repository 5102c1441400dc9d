//! Texts by hand: what each construct becomes, and which line an error names. `tests/it` parses what NVRTC emits.

use super::ast::{Function, Initial, Instruction, Module, Operand, Space, Statement, Type};
use super::parse;

const HEAD: &str = ".version 9.5\n.target sm_90a, debug\n.address_size 64\n";

fn module(text: &str) -> Module {
    parse(&format!("{HEAD}{text}")).unwrap()
}

/// The statements of a function around them.
fn body(text: &str) -> Vec<Statement> {
    let module = module(&format!(".func f() {{\n{text}\n}}"));
    module.functions[0].body.clone().unwrap()
}

fn instruction(text: &str) -> Instruction {
    match body(text).as_slice() {
        [Statement::Instruction(instruction)] => instruction.clone(),
        other => panic!("{other:?}"),
    }
}

/// Line and message, counted after the head.
fn error(text: &str) -> (u32, String) {
    let error = parse(&format!("{HEAD}{text}")).unwrap_err();
    (error.line - 3, error.message)
}

fn name(text: &str) -> Operand {
    Operand::Name(text.into())
}

#[test]
fn the_head() {
    let module =
        module(".file 1 \"a b.cu\", 12, 99\n.section .debug_info\n{\n.b8 1,2\n{.b64 $L__a+4}\n}\n.pragma \"x\";");
    assert_eq!(module.version, (9, 5));
    assert_eq!(module.target, "sm_90a");
    assert_eq!(module.files, [(1, "a b.cu".to_owned())]);
}

#[test]
fn variables() {
    let module = module(
        ".global .align 8 .u64 p = generic(t)+8;
         .visible .const .u64 st[2] = {13954449408, t+4-2};
         .global .attribute(.managed) .u32 m;
         .extern .shared .align 16 .b8 dyn[];
         .weak .global .v2 .f32 v[2] = {{1, 0f40000000}, {-1.5}};
         .const .s16 grid[2][3] = {{1}, {0x10, 010, 0b11}};
         .common .global .f64 d = 0d3FF0000000000000, e;
         .global .b8 text[] = {104, 105};",
    );
    let get = |name: &str| module.variables.iter().find(|v| &*v.name == name).unwrap();
    let address = |offset, generic| Initial::Address {
        name: "t".into(),
        offset,
        generic,
    };
    assert_eq!(get("p").init, [address(8, true)]);
    assert_eq!(get("st").init, [Initial::Bits(13_954_449_408), address(2, false)]);
    assert_eq!(get("st").space, Space::Const);
    assert_eq!((get("m").align, get("m").len, get("m").ty), (4, None, Type::U32));
    assert_eq!(
        (get("dyn").external, get("dyn").len, get("dyn").align),
        (true, Some(0), 16)
    );
    let bits = |values: &[u64]| values.iter().copied().map(Initial::Bits).collect::<Vec<_>>();
    let floats: Vec<u64> = [1.0_f32, 2.0, -1.5].iter().map(|f| u64::from(f.to_bits())).collect();
    assert_eq!(get("v").init, bits(&floats));
    assert_eq!((get("v").vector, get("v").align, get("v").len), (2, 8, Some(2)));
    assert_eq!(get("grid").init, bits(&[1, 0, 0, 16, 8, 3]));
    assert_eq!(get("grid").len, Some(6));
    assert_eq!(get("d").init, bits(&[1.0_f64.to_bits()]));
    assert!(get("e").init.is_empty());
    assert_eq!(get("text").len, Some(2));
    assert_eq!(get("text").line, 11);
}

#[test]
fn functions() {
    let module = module(
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
         .visible .entry k(.param .u64 .ptr .global .align 4 p, .param .align 4 .b8 big[24])
         .maxntid 128, 1, 1 .minnctapersm 2 .explicitcluster .reqnctapercluster 4 { ret; }
         .weak .func .attribute(.unified(1, 2)) (.param .b32 r) g (.param .b32 a) .noreturn { trap; }
         .func h(.param .b32 a);
         .alias h, g;",
    );
    let get = |name: &str| {
        module
            .functions
            .iter()
            .filter(|f| &*f.name == name)
            .collect::<Vec<&Function>>()
    };
    assert_eq!(
        (get("vprintf")[0].params.len(), get("vprintf")[0].body.is_none()),
        (2, true)
    );
    let kernel = get("k")[0];
    assert!(kernel.entry);
    assert_eq!((kernel.params[0].align, kernel.params[1].len), (8, Some(24)));
    let directives: Vec<(&str, &[u32])> = kernel.directives.iter().map(|(d, n)| (&**d, &**n)).collect();
    let expected: [(&str, &[u32]); 4] = [
        ("maxntid", &[128, 1, 1]),
        ("minnctapersm", &[2]),
        ("explicitcluster", &[]),
        ("reqnctapercluster", &[4]),
    ];
    assert_eq!(directives, expected);
    assert_eq!(get("h").len(), 1);
    assert_eq!(get("h")[0].body, get("g")[0].body);
}

#[test]
fn statements() {
    let statements = body(
        ".reg .pred %p<3>, q;\n{ .reg .b32 t; .param .b32 a, b[2]; }\n$L__1:\n.loc 1 20 3, function_name $L__info+12, inlined_at 1 30 5\n\
         targets: .branchtargets $L__1, $L__2;\nproto: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;\n.pragma \"nounroll\";\n;",
    );
    let [
        Statement::Registers {
            ty: Type::Pred, names, ..
        },
        Statement::Block(inner),
        rest @ ..,
    ] = statements.as_slice()
    else {
        panic!("{statements:?}");
    };
    assert_eq!(names.as_slice(), [("%p".into(), Some(3)), ("q".into(), None)]);
    assert_eq!(inner.len(), 3);
    let expected = [
        Statement::Label("$L__1".into()),
        Statement::Location {
            file: 1,
            line: 20,
            column: 3,
        },
        Statement::Targets {
            name: "targets".into(),
            targets: vec!["$L__1".into(), "$L__2".into()],
        },
    ];
    assert_eq!(rest, expected);
}

#[test]
fn operands() {
    let load = instruction("@!%p1 ld.relaxed.gpu.shared::cta.v2.u32 {%r1, _}, [%rd1+-8];");
    assert_eq!(load.guard, Some(("%p1".into(), true)));
    assert_eq!(load.opcode.join("/"), "ld/relaxed/gpu/shared::cta/v2/u32");
    let base = Some("%rd1".into());
    assert_eq!(
        load.operands,
        [
            Operand::Vector(vec![name("%r1"), Operand::Sink]),
            Operand::Address { base, offset: -8 }
        ]
    );
    let shuffle = instruction("shfl.sync.down.b32 %r1|%p1, %tid.x, 0x1fU, -1;");
    let pair = Operand::Pair(Box::new(name("%r1")), Box::new(name("%p1")));
    assert_eq!(
        shuffle.operands,
        [pair, name("%tid.x"), Operand::Integer(31), Operand::Integer(-1)]
    );
    let call = instruction("call.uni (r), f, (a, b), proto;");
    let list = |names: &[&str]| Operand::List(names.iter().map(|n| name(n)).collect());
    assert_eq!(
        call.operands,
        [list(&["r"]), name("f"), list(&["a", "b"]), name("proto")]
    );
    let floats = instruction("x 0f3F800000, 0d3FF0000000000000, -1.5e+1, table+8, !%p, [sh], [16];");
    let address = |base: Option<&str>, offset| Operand::Address {
        base: base.map(Into::into),
        offset,
    };
    assert_eq!(
        floats.operands,
        [
            Operand::F32(0x3f80_0000),
            Operand::F64(1.0_f64.to_bits()),
            Operand::F64((-15.0_f64).to_bits()),
            Operand::Offset {
                name: "table".into(),
                offset: 8
            },
            Operand::Not("%p".into()),
            address(Some("sh"), 0),
            address(None, 16),
        ]
    );
}

#[test]
fn a_label_needs_no_space() {
    let statements = body("L1:add.u32 a,b,c;@p bra L1;");
    assert_eq!(statements.len(), 3);
    assert_eq!(statements[0], Statement::Label("L1".into()));
}

#[test]
fn errors_name_the_line() {
    let cases = [
        ("\n.frob 1;", 2, "expected a variable or a function, found `.frob`"),
        (".func f()\n{\n.frob 1;\n}", 3, "unknown directive .frob in a function"),
        (".func f()\n{\nadd.u32 a, b\n}", 4, "expected `,` or `;`, found `}`"),
        (
            ".func f()\n{\nx [t, {a, b}];\n}",
            3,
            "addresses of several parts (tensor maps, textures) are not supported",
        ),
        (".func f()\n{\n", 3, "expected a statement, found the end of the text"),
        (".func f()\n{\nx 0x;\n}", 3, "`0x` is not a number"),
        (".func f()\n{\nx 0f3F80;\n}", 3, "`0f3F80` is not a number"),
        (
            ".func f()\n{\nx a[1];\n}",
            3,
            "an indexed operand `name[i]` is not supported: write `name+bytes`",
        ),
        (
            ".func f()\n{\n.reg .v4 .f32 a;\n}",
            3,
            "vector registers are not supported",
        ),
        (".global .u99 a;", 1, "unknown type .u99"),
        (
            ".global .align 3 .u32 a;",
            1,
            "an alignment of 3 bytes, which is not a power of two",
        ),
        (
            ".global .b8 a[4] = {0xFF(b)};",
            1,
            "a byte of an address, as in 0xFF(name), is not supported as an initial value",
        ),
        ("/* no end\n", 1, "a comment without an end"),
        (".file 1 \"no end\n", 1, "a string without an end"),
        ("\n\n#line", 3, "unexpected character '#'"),
        (".alias a, b;", 1, "a is an alias of b, which has no body"),
        (
            ".entry k(.param .u32 a)\n.maxfrob 1 { }",
            2,
            "unknown directive .maxfrob of a function",
        ),
        (
            ".global .u8 a[1099511627776][8];",
            1,
            "an array of more elements than any memory holds",
        ),
    ];
    for (text, line, message) in cases {
        assert_eq!(error(text), (line, message.to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_ptx_says_so() {
    assert_eq!(parse("").unwrap_err().message, "there is no .version: this is not PTX");
    assert_eq!(
        parse("int main() {}").unwrap_err().message,
        "expected a directive, found `int`"
    );
    let bits32 = parse(".version 9.0\n.target sm_90\n.address_size 32").unwrap_err();
    assert_eq!(bits32.line, 3);
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("{", "}"), ("x {", "};"), ("x (", ");")] {
        let text = format!(".func f() {{ {}{} }}", open.repeat(100_000), close.repeat(100_000));
        assert!(parse(&format!("{HEAD}{text}")).is_err());
    }
    let text = format!(
        "{HEAD}.global .b8 a[1] = {}1{};",
        "{".repeat(100_000),
        "}".repeat(100_000)
    );
    assert!(parse(&text).unwrap_err().message.starts_with("nested"));
}

#[test]
fn a_brace_of_a_huge_dimension_takes_no_memory() {
    let text = ".global .b8 a[2][1000000000] = {{1}, {2}};";
    assert_eq!(error(text).1, "an initial value of too many elements");
}
