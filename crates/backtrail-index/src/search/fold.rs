//! Classifies characters for search, and folds case and accents.

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharKind {
    /// A letter without case or in lower case.
    Lower,
    /// A letter in upper case.
    Upper,
    /// A digit.
    Digit,
    /// A word of its own: a character of a script without spaces, or an emoji.
    Single,
    /// A mark on the previous character, or something invisible. It is ignored.
    Mark,
    /// A separator between words.
    Other,
}

/// Classifies a character.
pub(super) fn kind(c: char) -> CharKind {
    if c.is_ascii() {
        return match c {
            'a'..='z' => CharKind::Lower,
            'A'..='Z' => CharKind::Upper,
            '0'..='9' => CharKind::Digit,
            _ => CharKind::Other,
        };
    }
    if is_mark(c) {
        CharKind::Mark
    } else if is_single(c) {
        CharKind::Single
    } else if c.is_uppercase() {
        CharKind::Upper
    } else if c.is_numeric() {
        CharKind::Digit
    } else if c.is_alphabetic() || is_indic_sign(c) {
        CharKind::Lower
    } else {
        CharKind::Other
    }
}

/// Appends a character in lower case without accents.
pub(super) fn push_folded(c: char, out: &mut String) {
    for c in c.to_lowercase() {
        push_without_accent(c, out);
    }
}

fn push_without_accent(c: char, out: &mut String) {
    match c {
        '\0'..='\u{7f}' => out.push(c),
        'æ' => out.push_str("ae"),
        'œ' => out.push_str("oe"),
        'ß' => out.push_str("ss"),
        '\u{ff21}'..='\u{ff5a}' | '\u{ff10}'..='\u{ff19}' => push_narrow(c, out),
        _ if is_mark(c) => {}
        _ => out.push(without_accent(c)),
    }
}

/// Appends a full-width letter or digit in ordinary width.
fn push_narrow(c: char, out: &mut String) {
    let narrow = char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c);
    out.push(narrow.to_ascii_lowercase());
}

fn without_accent(c: char) -> char {
    let latin = match u32::from(c) {
        code @ 0xe0..0x250 => LATIN.get(code as usize - 0xe0),
        code @ 0x1e00..0x1f00 => LATIN_MORE.get(code as usize - 0x1e00),
        _ => return without_other_accent(c),
    };
    match latin {
        None | Some(b'.') => c,
        Some(&letter) => char::from(letter),
    }
}

/// Greek, Cyrillic and Arabic letters without their marks.
fn without_other_accent(c: char) -> char {
    match c {
        '\u{3ac}'
        | '\u{1f00}'..='\u{1f07}'
        | '\u{1f70}'..='\u{1f71}'
        | '\u{1f80}'..='\u{1f87}'
        | '\u{1fb0}'..='\u{1fb7}' => 'α',
        '\u{3ad}' | '\u{1f10}'..='\u{1f15}' | '\u{1f72}' | '\u{1f73}' => 'ε',
        '\u{3ae}'
        | '\u{1f20}'..='\u{1f27}'
        | '\u{1f74}'..='\u{1f75}'
        | '\u{1f90}'..='\u{1f97}'
        | '\u{1fc2}'..='\u{1fc7}' => 'η',
        '\u{390}'
        | '\u{3af}'
        | '\u{3ca}'
        | '\u{1f30}'..='\u{1f37}'
        | '\u{1f76}'..='\u{1f77}'
        | '\u{1fd0}'..='\u{1fd7}' => 'ι',
        '\u{3cc}' | '\u{1f40}'..='\u{1f45}' | '\u{1f78}' | '\u{1f79}' => 'ο',
        '\u{1fe4}' | '\u{1fe5}' => 'ρ',
        '\u{3c2}' => 'σ',
        '\u{3b0}'
        | '\u{3cb}'
        | '\u{3cd}'
        | '\u{1f50}'..='\u{1f57}'
        | '\u{1f7a}'..='\u{1f7b}'
        | '\u{1fe0}'..='\u{1fe3}'
        | '\u{1fe6}'..='\u{1fe7}' => 'υ',
        '\u{3ce}'
        | '\u{1f60}'..='\u{1f67}'
        | '\u{1f7c}'..='\u{1f7d}'
        | '\u{1fa0}'..='\u{1fa7}'
        | '\u{1ff2}'..='\u{1ff7}' => 'ω',
        '\u{3d3}' | '\u{3d4}' => 'ϒ',
        '\u{4d1}' | '\u{4d3}' => 'а',
        '\u{453}' => 'г',
        '\u{450}' | '\u{451}' | '\u{4d7}' => 'е',
        '\u{4c2}' | '\u{4dd}' => 'ж',
        '\u{4df}' => 'з',
        '\u{439}' | '\u{45d}' | '\u{4e3}' | '\u{4e5}' => 'и',
        '\u{45c}' => 'к',
        '\u{4e7}' => 'о',
        '\u{45e}' | '\u{4ef}' | '\u{4f1}' | '\u{4f3}' => 'у',
        '\u{4f5}' => 'ч',
        '\u{4f9}' => 'ы',
        '\u{4ed}' => 'э',
        '\u{457}' => 'і',
        '\u{477}' => 'ѵ',
        '\u{4db}' => 'ә',
        '\u{4eb}' => 'ө',
        '\u{622}' | '\u{623}' | '\u{625}' => 'ا',
        '\u{624}' => 'و',
        '\u{626}' => 'ي',
        '\u{6c2}' => 'ہ',
        '\u{6d3}' => 'ے',
        '\u{6c0}' => 'ە',
        _ => c,
    }
}

/// Combining accents, vowel points, joiners, variation selectors and skin tones.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5bd}'
        | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' | '\u{6e7}'..='\u{6e8}'
        | '\u{6ea}'..='\u{6ed}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{200c}'..='\u{200f}' | '\u{2060}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}'
        | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0100}'..='\u{e01ef}')
}

/// Signs inside words of Indic scripts that Unicode does not count as letters.
fn is_indic_sign(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{dff}') && !matches!(c, '\u{964}' | '\u{965}' | '\u{970}')
}

/// Scripts without spaces between words (including Korean, whose particles attach to
/// words) and emoji.
fn is_single(c: char) -> bool {
    match c {
        '\u{e3f}' | '\u{e4f}' | '\u{e5a}' | '\u{e5b}' | '\u{30fb}' => false,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}' => true,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' => true,
        '\u{3041}'..='\u{30ff}' | '\u{3105}'..='\u{318f}' | '\u{31a0}'..='\u{31ff}' => true,
        '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' => true,
        '\u{ff66}'..='\u{ffdc}' | '\u{20000}'..='\u{3ffff}' => true,
        '\u{231a}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b05}'..='\u{2b55}' => true,
        '\u{1f000}'..='\u{1faff}' => true,
        _ => false,
    }
}

/// Letters from U+00E0 on without their marks; a dot means unchanged.
const LATIN: &[u8; 368] = b"\
    aaaaaa.ceeeeiiiidnooooo.ouuuuy.y.a.a.a.c.c.c.c.d.d.e.e.e.e.e.g.g\
    .g.g.h.h.i.i.i.i.i...j.k..l.l.l.l.l.n.n.nn...o.o.o...r.r.r.s.s.s\
    .s.t.t.t.u.u.u.u.u.u.w.y..z.z.zs................................\
    .o..............u.............................a.i.o.u.u.u.u.u..a\
    .a.....g.k.o.o..j....g...n.a.....a.a.e.e.i.i.o.o.r.r.u.u.s.t...h\
    .......a.e.o.o.o.o.y............................\
";

/// The same from U+1E00 on.
const LATIN_MORE: &[u8; 256] = b"\
    .a.b.b.b.c.d.d.d.d.d.e.e.e.e.e.f.g.h.h.h.h.h.i.i.k.k.k.l.l.l.l.m\
    .m.m.n.n.n.n.o.o.o.o.p.p.r.r.r.r.s.s.s.s.s.t.t.t.t.u.u.u.u.u.v.v\
    .w.w.w.w.w.x.x.y.z.z.zhtwy.......a.a.a.a.a.a.a.a.a.a.a.a.e.e.e.e\
    .e.e.e.e.i.i.o.o.o.o.o.o.o.o.o.o.o.o.u.u.u.u.u.u.u.y.y.y.y......\
";
