//! The icon: a pilot flame that tells four states by its shape as well as by its colour, and carries a mark when something
//! happened that nobody has looked at yet, and another while notifications are paused. `badge` draws what stands beside a row.
//!
//! The pictures are drawn in `assets/icon/*.svg` and rendered by `assets/icon/render.sh`; the rendered ones are part of the
//! program. macOS takes the black ones, of which it uses the outline alone, and paints them as its menu bar wants.

mod badge;

#[cfg(target_os = "linux")]
pub(crate) use badge::badge;

pub(crate) use crate::core::fleet::State;

/// A picture of `assets/icon` as it was rendered for this system, as PNG.
macro_rules! rendered {
    ($name:literal) => {
        rendered!($name, "")
    };
    ($name:literal, contrast) => {
        rendered!($name, "-contrast")
    };
    ($name:literal, $style:literal) => {{
        #[cfg(target_os = "macos")]
        let png = include_bytes!(concat!("../../assets/icon/", $name, "-template.png")).as_slice();
        #[cfg(not(target_os = "macos"))]
        let png = include_bytes!(concat!("../../assets/icon/", $name, $style, ".png")).as_slice();
        png
    }};
}

/// What the icon shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icon {
    /// Its shape and colour.
    pub state: State,
    /// Something happened since the user last looked.
    pub unseen: bool,
    /// Notifications are paused: two bars at the upper left.
    pub paused: bool,
    /// How many need the user, where that is to be shown; 0 shows no number.
    pub count: usize,
    /// In black and white, by shape alone.
    pub contrast: bool,
}

/// A picture: rows of pixels, each red, green, blue, opacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The pixels, four bytes each.
    pub rgba: Vec<u8>,
}

impl Icon {
    /// The icon of a state, with nothing else to tell.
    pub(crate) const fn of(state: State) -> Self {
        Self { state, unseen: false, paused: false, count: 0, contrast: false }
    }

    /// The number that goes on it, as PNG.
    const fn number(self) -> Option<&'static [u8]> {
        Some(match self.count {
            0 => return None,
            1 => rendered!("count-1"),
            2 => rendered!("count-2"),
            3 => rendered!("count-3"),
            4 => rendered!("count-4"),
            5 => rendered!("count-5"),
            6 => rendered!("count-6"),
            7 => rendered!("count-7"),
            8 => rendered!("count-8"),
            9 => rendered!("count-9"),
            _ => rendered!("count-more"),
        })
    }

    /// The rendered picture, as PNG.
    const fn png(self) -> &'static [u8] {
        match (self.state, self.unseen, self.contrast) {
            (State::Well, false, false) => rendered!("well"),
            (State::Well, true, false) => rendered!("well-unseen"),
            (State::Well, false, true) => rendered!("well", contrast),
            (State::Well, true, true) => rendered!("well-unseen", contrast),
            (State::Working, false, false) => rendered!("working"),
            (State::Working, true, false) => rendered!("working-unseen"),
            (State::Working, false, true) => rendered!("working", contrast),
            (State::Working, true, true) => rendered!("working-unseen", contrast),
            (State::NeedsYou, false, false) => rendered!("needs-you"),
            (State::NeedsYou, true, false) => rendered!("needs-you-unseen"),
            (State::NeedsYou, false, true) => rendered!("needs-you", contrast),
            (State::NeedsYou, true, true) => rendered!("needs-you-unseen", contrast),
            (State::Trouble, false, false) => rendered!("trouble"),
            (State::Trouble, true, false) => rendered!("trouble-unseen"),
            (State::Trouble, false, true) => rendered!("trouble", contrast),
            (State::Trouble, true, true) => rendered!("trouble-unseen", contrast),
        }
    }

    /// The rendered picture.
    ///
    /// # Errors
    /// Where it is no PNG of eight bits a channel with opacity; a test reads them all.
    pub(crate) fn picture(self) -> anyhow::Result<Picture> {
        let mut picture = decode(self.png())?;
        if let Some(number) = self.number() {
            picture.put(&decode(number)?);
        }
        if self.paused {
            picture.pause();
        }
        Ok(picture)
    }
}

impl Picture {
    /// The picture as PNG.
    ///
    /// # Errors
    /// Where it has not as many pixels as it says.
    pub(crate) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.write_header()?.write_image_data(&self.rgba)?;
        Ok(out)
    }

    /// Draws the two bars of a pause, and what sets them off from the flame: an outline; around those of a template, a gap.
    fn pause(&mut self) {
        let [around, bar] = match cfg!(target_os = "macos") {
            true => [[0, 0, 0, 0], [0, 0, 0, 255]],
            false => [[16, 20, 31, 255], [255, 255, 255, 255]],
        };
        // In 48ths of the picture, as the flames are drawn: left, top, width and height of a bar, and its outline.
        for left in [3, 12] {
            self.fill([left - 2, 1, 9, 20], around);
        }
        for left in [3, 12] {
            self.fill([left, 3, 5, 16], bar);
        }
    }

    fn fill(&mut self, area: [u32; 4], colour: [u8; 4]) {
        let [left, top, width, height] = area.map(|length| length * self.width / 48);
        for pixel in (top..top + height).flat_map(|y| (left..left + width).map(move |x| (x, y))) {
            let at = (pixel.1 * self.width + pixel.0) as usize * 4;
            if let Some(place) = self.rgba.get_mut(at..at + 4) {
                place.copy_from_slice(&colour);
            }
        }
    }

    /// Puts the disc with a number on it, and cuts out what is next to the disc.
    fn put(&mut self, number: &Self) {
        /// Where the middle of the disc is, and how far from it nothing else may be; of 48, as in `count.svg`.
        const DISC: (f32, f32, f32) = (35.5, 35.8, 14.0);
        let (scale, width) = (48.0 / self.width as f32, self.width as usize);
        for (n, (pixel, above)) in self.rgba.chunks_exact_mut(4).zip(number.rgba.chunks_exact(4)).enumerate() {
            let (x, y) = (((n % width) as f32 + 0.5) * scale, ((n / width) as f32 + 0.5) * scale);
            let distance = (x - DISC.0).hypot(y - DISC.1) - DISC.2;
            let left = distance.clamp(0.0, 1.0);
            pixel[3] = (f32::from(pixel[3]) * left).round() as u8;
            // Beside what was cut out, one of the two is clear: the more opaque one counts.
            if above[3] >= pixel[3] {
                pixel.copy_from_slice(above);
            }
        }
    }
}

fn decode(png: &[u8]) -> anyhow::Result<Picture> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info()?;
    let mut rgba = vec![0; reader.output_buffer_size().unwrap_or_default()];
    let info = reader.next_frame(&mut rgba)?;
    anyhow::ensure!(
        (info.color_type, info.bit_depth) == (png::ColorType::Rgba, png::BitDepth::Eight),
        "the icon is not a picture with colour and opacity"
    );
    rgba.truncate(info.buffer_size());
    Ok(Picture { width: info.width, height: info.height, rgba })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; 4] = [State::Well, State::Working, State::NeedsYou, State::Trouble];

    /// The share of pixels that are opaque in one picture and not in the other.
    fn outlines_differ(a: &Picture, b: &Picture) -> usize {
        let opaque = |picture: &Picture| -> Vec<bool> { picture.rgba.chunks(4).map(|pixel| pixel[3] > 127).collect() };
        let differ = opaque(a).iter().zip(opaque(b)).filter(|(a, b)| *a != b).count();
        differ * 100 / (a.width * a.height) as usize
    }

    #[test]
    fn every_icon_is_a_picture() {
        for state in ALL {
            for unseen in [false, true] {
                for (contrast, count) in
                    [false, true].into_iter().flat_map(|it| [0, 1, 9, 10, usize::MAX].map(|n| (it, n)))
                {
                    let picture = Icon { state, unseen, paused: false, count, contrast }.picture().unwrap();
                    assert!(picture.width == picture.height && picture.width >= 32);
                    assert_eq!(picture.rgba.len() as u32, picture.width * picture.height * 4);
                }
            }
        }
    }

    #[test]
    fn a_pause_shows() {
        for state in ALL {
            let [plain, paused] = [false, true].map(|paused| Icon { paused, ..Icon::of(state) }.picture().unwrap());
            assert!(outlines_differ(&plain, &paused) >= 2, "{state:?}");
        }
    }

    /// A number hides neither the state nor the mark, and each is another picture.
    #[test]
    fn a_number_is_put_beside_the_rest() {
        for state in [State::NeedsYou, State::Trouble] {
            let of = |count| Icon { count, ..Icon::of(state) }.picture().unwrap();
            let (none, pictures): (_, Vec<_>) = (of(0), (1..=10).map(of).collect());
            for (n, one) in pictures.iter().enumerate() {
                assert!(pictures[n + 1..].iter().all(|other| other != one) && *one != none, "{n}");
                let upper = 4 * one.width as usize * one.height as usize * 2 / 5;
                assert_eq!(one.rgba[..upper], none.rgba[..upper], "the upper part is as it was");
            }
        }
        let shapes =
            [State::NeedsYou, State::Trouble].map(|state| Icon { count: 3, contrast: true, ..Icon::of(state) });
        let [needs, trouble] = shapes.map(|icon| icon.picture().unwrap());
        let differ = needs.rgba.chunks(4).zip(trouble.rgba.chunks(4)).filter(|(a, b)| a != b).count();
        assert!(differ * 100 / (needs.rgba.len() / 4) >= 4, "without colours they differ by {differ} pixels");
    }

    /// For `tests/visible/icons.sh`, which shows them on panels.
    #[test]
    #[ignore = "writes pictures to look at, to the folder that PILOTLIGHT_PICTURES names"]
    fn pictures_to_look_at() {
        let Some(folder) = std::env::var_os("PILOTLIGHT_PICTURES").map(std::path::PathBuf::from) else { return };
        for (name, state) in [("a", State::Well), ("b", State::Working), ("c", State::NeedsYou), ("d", State::Trouble)]
        {
            for (variant, unseen, count, contrast) in [
                (0, false, 0, false),
                (1, true, 0, false),
                (2, false, 2, false),
                (3, true, 10, false),
                (4, false, 0, true),
                (5, true, 0, true),
                (6, false, 7, true),
            ] {
                if count > 0 && matches!(state, State::Well | State::Working) {
                    continue; // where nobody needs the user there is no number
                }
                let picture = Icon { state, unseen, paused: false, count, contrast }.picture().unwrap();
                let file = std::fs::File::create(folder.join(format!("{name}{variant}.png"))).unwrap();
                let mut encoder = png::Encoder::new(file, picture.width, picture.height);
                encoder.set_color(png::ColorType::Rgba);
                encoder.write_header().unwrap().write_image_data(&picture.rgba).unwrap();
            }
        }
    }

    /// The templates have no colours: what tells them apart is their shape.
    #[test]
    fn the_icons_differ_without_their_colours() {
        let names = ["well", "working", "needs-you", "trouble"];
        let names = names.into_iter().flat_map(|name| [name.to_owned(), format!("{name}-unseen")]);
        let pictures: Vec<_> = names
            .map(|name| {
                let path = format!("{}/assets/icon/{name}-template.png", env!("CARGO_MANIFEST_DIR"));
                (name, decode(&std::fs::read(path).unwrap()).unwrap())
            })
            .collect();
        for (a, one) in &pictures {
            for (b, other) in &pictures {
                assert!(a == b || outlines_differ(one, other) >= 2, "{a} and {b}");
            }
        }
    }
}
