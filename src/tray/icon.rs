//! The icon: a pilot flame whose shape and colour show five states, with marks for unseen changes and paused
//! notifications. `badge` draws the pictures next to rows.
//!
//! The pictures are drawn in `assets/icon/*.svg` and rendered by `assets/icon/render.sh`; the program embeds the
//! rendered ones. macOS gets black templates: it uses only their outline, and colours it to suit the menu bar.

mod badge;
mod picture;

#[cfg(target_os = "linux")]
pub(crate) use badge::badge;
pub(crate) use picture::{Picture, decode};

pub(crate) use pilotlight_core::fleet::State;

/// A rendered picture of `assets/icon` for this system, as PNG.
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

/// From this number on, the icon says only that there are many.
#[cfg(target_os = "linux")]
const COUNT_MAX: usize = 10;

/// The content of the icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icon {
    /// The state, which decides shape and colour.
    pub state: State,
    /// Whether there are unseen changes.
    pub unseen: bool,
    /// Whether notifications are paused: two bars at the upper left.
    pub paused: bool,
    /// The number of sessions that need the user; 0 shows no number.
    pub count: usize,
    /// Whether it is black and white, so that states differ by shape alone.
    pub contrast: bool,
}

impl Icon {
    /// The icon of a state, without any marks.
    pub(crate) const fn of(state: State) -> Self {
        Self { state, unseen: false, paused: false, count: 0, contrast: false }
    }

    /// Every icon with these settings.
    #[cfg(target_os = "linux")]
    pub(crate) fn all(contrast: bool, count: bool) -> impl Iterator<Item = Self> {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        let icons = [State::Well, State::Unknown, State::Working, State::NeedsYou, State::Trouble].map(move |state| {
            let counts = if count && matches!(state, State::NeedsYou | State::Trouble) { 0..=COUNT_MAX } else { 0..=0 };
            counts.flat_map(move |count| flags.map(|(unseen, paused)| Self { state, unseen, paused, count, contrast }))
        });
        icons.into_iter().flatten()
    }

    /// The number on it, as PNG.
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
            (State::Unknown, false, false) => rendered!("unknown"),
            (State::Unknown, true, false) => rendered!("unknown-unseen"),
            (State::Unknown, false, true) => rendered!("unknown", contrast),
            (State::Unknown, true, true) => rendered!("unknown-unseen", contrast),
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
    /// Where an asset is not an RGBA PNG with 8 bits per channel; a test reads them all.
    pub(crate) fn picture(self) -> anyhow::Result<Picture> {
        let mut picture = decode(self.png())?;
        if let Some(number) = self.number() {
            picture.overlay_number(&decode(number)?);
        }
        if self.paused {
            picture.draw_pause();
        }
        Ok(picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; 5] = [State::Well, State::Unknown, State::Working, State::NeedsYou, State::Trouble];

    /// The percentage of pixels that are opaque in only one of the pictures.
    fn outline_difference(a: &Picture, b: &Picture) -> usize {
        let opaque = |picture: &Picture| -> Vec<bool> { picture.rgba.chunks(4).map(|pixel| pixel[3] > 127).collect() };
        let differ = opaque(a).iter().zip(opaque(b)).filter(|(a, b)| *a != b).count();
        differ * 100 / (a.width * a.height) as usize
    }

    #[test]
    fn every_icon_can_be_rendered() {
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
    fn a_pause_is_visible() {
        for state in ALL {
            let [plain, paused] = [false, true].map(|paused| Icon { paused, ..Icon::of(state) }.picture().unwrap());
            assert!(outline_difference(&plain, &paused) >= 2, "{state:?}");
        }
    }

    #[test]
    fn every_number_is_distinct_and_hides_neither_the_state_nor_the_mark() {
        for state in [State::NeedsYou, State::Trouble] {
            let of = |count| Icon { count, ..Icon::of(state) }.picture().unwrap();
            let (none, pictures): (_, Vec<_>) = (of(0), (1..=10).map(of).collect());
            for (n, one) in pictures.iter().enumerate() {
                assert!(pictures[n + 1..].iter().all(|other| other != one) && *one != none, "{n}");
                let upper = 4 * one.width as usize * one.height as usize * 2 / 5;
                assert_eq!(one.rgba[..upper], none.rgba[..upper], "the upper part is unchanged");
            }
        }
        let shapes =
            [State::NeedsYou, State::Trouble].map(|state| Icon { count: 3, contrast: true, ..Icon::of(state) });
        let [needs, trouble] = shapes.map(|icon| icon.picture().unwrap());
        let differ = needs.rgba.chunks(4).zip(trouble.rgba.chunks(4)).filter(|(a, b)| a != b).count();
        assert!(differ * 100 / (needs.rgba.len() / 4) >= 4, "in black and white they differ by only {differ} pixels");
    }

    /// Writes the pictures for `tests/visible/icons.sh`, which shows them on panels.
    #[test]
    #[ignore = "writes pictures to look at, to the folder that PILOTLIGHT_PICTURES names"]
    fn pictures_to_look_at() {
        let Some(folder) = std::env::var_os("PILOTLIGHT_PICTURES").map(std::path::PathBuf::from) else { return };
        let states = [State::Well, State::Working, State::NeedsYou, State::Trouble, State::Unknown];
        for (name, state) in ["a", "b", "c", "d", "e"].into_iter().zip(states) {
            for (variant, unseen, count, contrast) in [
                (0, false, 0, false),
                (1, true, 0, false),
                (2, false, 2, false),
                (3, true, 10, false),
                (4, false, 0, true),
                (5, true, 0, true),
                (6, false, 7, true),
            ] {
                if count > 0 && matches!(state, State::Well | State::Unknown | State::Working) {
                    continue; // these states never show a number
                }
                let picture = Icon { state, unseen, paused: false, count, contrast }.picture().unwrap();
                let file = std::fs::File::create(folder.join(format!("{name}{variant}.png"))).unwrap();
                let mut encoder = png::Encoder::new(file, picture.width, picture.height);
                encoder.set_color(png::ColorType::Rgba);
                encoder.write_header().unwrap().write_image_data(&picture.rgba).unwrap();
            }
        }
    }

    /// In black and white no colour helps, and a hole shows the panel.
    #[test]
    #[cfg(not(target_os = "macos"))]
    fn in_black_and_white_each_state_has_a_shape_of_its_own_on_any_panel() {
        let shown = |picture: &Picture, panel: u32| -> Vec<u32> {
            let on =
                |pixel: &[u8]| (u32::from(pixel[0]) * u32::from(pixel[3]) + panel * (255 - u32::from(pixel[3]))) / 255;
            picture.rgba.chunks(4).map(on).collect()
        };
        for unseen in [false, true] {
            let of = |state| Icon { unseen, contrast: true, ..Icon::of(state) }.picture().unwrap();
            for (n, one) in ALL.into_iter().enumerate() {
                for other in ALL.into_iter().skip(n + 1) {
                    for panel in [255, 138, 0] {
                        let (a, b) = (shown(&of(one), panel), shown(&of(other), panel));
                        let differ = a.iter().zip(&b).filter(|(a, b)| a.abs_diff(**b) > 60).count() * 100 / a.len();
                        assert!(differ >= 4, "{one:?} and {other:?} on {panel}: {differ}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_templates_differ_by_their_shape() {
        let names = ["well", "unknown", "working", "needs-you", "trouble"];
        let names = names.into_iter().flat_map(|name| [name.to_owned(), format!("{name}-unseen")]);
        let pictures: Vec<_> = names
            .map(|name| {
                let path = format!("{}/assets/icon/{name}-template.png", env!("CARGO_MANIFEST_DIR"));
                (name, decode(&std::fs::read(path).unwrap()).unwrap())
            })
            .collect();
        for (a, one) in &pictures {
            for (b, other) in &pictures {
                assert!(a == b || outline_difference(one, other) >= 2, "{a} and {b}");
            }
        }
    }
}
