//! Text that looks like source code to a compressor: repeated words, similar lines, names
//! that belong to one file.

use super::random::Random;

const SYLLABLES: [&str; 40] = [
    "re", "con", "ta", "ble", "ing", "ser", "ver", "com", "pu", "ter", "in", "dex", "par", "se",
    "wri", "lo", "ad", "fi", "le", "na", "me", "co", "unt", "er", "ror", "sta", "te", "buf", "fer",
    "qu", "ery", "no", "de", "li", "st", "map", "ha", "sh", "key", "val",
];

/// Lines with placeholders for a name of the file (`@`), a word of the project (`$`), a
/// number (`#`) and the indentation (`>`).
const LINES: [&str; 26] = [
    ">let @ = self.@($)?;\n",
    ">let mut @ = $::new();\n",
    ">if @.$() > # {\n",
    ">}\n",
    ">}\n",
    ">return Err($Error::new(\"cannot $ the $\", @));\n",
    ">@.push($ { @: #, $: @.$() });\n",
    ">for @ in @.iter().filter(|$| $.@ != #) {\n",
    ">// The $ of @ is $ before it is $, so that $ holds.\n",
    ">self.@ += @.$();\n",
    ">match @.$(#) {\n",
    ">Some(@) => @.$(@),\n",
    ">None => return Ok(#),\n",
    "\n",
    "\n",
    "pub fn @(&mut self, $: &$, @: usize) -> Result<$> {\n",
    "fn @($: &[$]) -> Option<@> {\n",
    "#[derive(Debug, Clone)]\npub struct $@ {\n",
    ">pub @: Vec<$>,\n",
    "use crate::$::{$, @};\n",
    "impl $ for @ {\n",
    ">assert_eq!(@.$(#), Some(@));\n",
    ">/// Returns the $ that @ names, or the $ of its $.\n",
    ">@.$(|@| @.$ == #).collect::<Vec<_>>()\n",
    ">const @: usize = #;\n",
    ">tracing::debug!(@ = %$, \"$ $ after # $\");\n",
];

/// The words that all files of a project share.
#[derive(Debug)]
pub(super) struct Vocabulary(Vec<String>);

impl Vocabulary {
    pub(super) fn new(random: &mut Random) -> Self {
        Self((0..4_000).map(|_| word(random, 2)).collect())
    }

    /// Returns a word; the first ones are far more frequent than the last.
    pub(super) fn pick(&self, random: &mut Random) -> &str {
        let rank = (self.0.len() as f64).powf(random.part()) as usize;
        &self.0[rank.min(self.0.len() - 1)]
    }

    /// Returns about `len` bytes of text, in whole lines.
    pub(super) fn text(&self, random: &mut Random, len: usize) -> Vec<u8> {
        let names: Vec<String> = (0..8 + len / 300).map(|_| self.name(random)).collect();
        let mut out = Vec::with_capacity(len + 128);
        let mut depth = 1;
        while out.len() < len {
            let line = *random.of(&LINES);
            self.line(random, line, &names, depth, &mut out);
            depth = (depth + random.below(3)).saturating_sub(1).clamp(1, 4);
        }
        out
    }

    /// Returns one line.
    pub(super) fn new_line(&self, random: &mut Random) -> Vec<u8> {
        let names = [self.name(random), self.name(random)];
        let mut out = Vec::new();
        self.line(random, LINES[8], &names, 2, &mut out);
        out
    }

    /// Writes a line with its placeholders filled in.
    fn line(
        &self,
        random: &mut Random,
        line: &str,
        names: &[String],
        depth: usize,
        out: &mut Vec<u8>,
    ) {
        for byte in line.bytes() {
            match byte {
                b'@' => out.extend_from_slice(random.of(names).as_bytes()),
                b'$' => out.extend_from_slice(self.pick(random).as_bytes()),
                b'#' => out.extend_from_slice(random.below(1_000).to_string().as_bytes()),
                b'>' if line.starts_with('>') && out.last().is_none_or(|b| *b == b'\n') => {
                    out.resize(out.len() + 4 * depth, b' ');
                }
                byte => out.push(byte),
            }
        }
    }

    /// Returns a name of two words.
    pub(super) fn name(&self, random: &mut Random) -> String {
        let first = self.pick(random).to_owned();
        format!("{first}_{}", self.pick(random))
    }
}

fn word(random: &mut Random, most: usize) -> String {
    let count = 1 + random.below(most + 1);
    (0..count).map(|_| *random.of(&SYLLABLES)).collect()
}

/// Returns incompressible bytes, like images.
pub(super) fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n\0".to_vec();
    while out.len() < len {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_compresses_as_sources_do_and_noise_does_not() {
        let mut random = Random::new(3);
        let words = Vocabulary::new(&mut random);
        let mut shrink = |make: &mut dyn FnMut(&mut Random) -> Vec<u8>| {
            let (mut plain, mut packed) = (0, 0);
            for _ in 0..50 {
                let bytes = make(&mut random);
                plain += bytes.len();
                packed += zstd::bulk::compress(&bytes, 3).unwrap().len();
            }
            plain as f64 / packed as f64
        };
        let of_text = shrink(&mut |random| words.text(random, 10_000));
        assert!((3.0..4.0).contains(&of_text), "{of_text}");
        let of_noise = shrink(&mut |random| noise(random, 10_000));
        assert!(of_noise < 1.01, "{of_noise}");
    }
}
