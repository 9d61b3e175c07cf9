//! The small pictures next to the rows of the menu, for panels that draw them. Each status has its own shape, so that
//! none depends on colour alone. The marks in the texts of the rows show the same.
//!
//! A panel does not recolour a picture when its row is highlighted, as it does with the text. So each shape has a white
//! edge, which shows it on a highlight of its own colour, and colours that stand out from light and dark menus alike.

use super::picture::Picture;
use pilotlight_core::verdict::Status;
use std::sync::LazyLock;

/// Width and height in pixels, as menus draw them.
const SIZE: u16 = 16;
/// Samples per pixel in each direction, for antialiasing.
const SAMPLES: u16 = 4;
/// Width of the white edge, in samples.
const EDGE: u16 = SAMPLES;

const WHITE: [u8; 3] = [0xff; 3];
const AMBER: [u8; 3] = [0xd0, 0x80, 0x00];
const RED: [u8; 3] = [0xe2, 0x3b, 0x3b];
const BLUE: [u8; 3] = [0x3d, 0x8b, 0xf2];
const GREEN: [u8; 3] = [0x2f, 0xa3, 0x55];
const GREY: [u8; 3] = [0x8a, 0x93, 0xa5];

static PICTURES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| Status::ALL.iter().map(|status| draw(*status).png().unwrap_or_default()).collect());

/// The picture of a status, as PNG.
pub(crate) fn badge(status: Status) -> &'static [u8] {
    let at = Status::ALL.iter().position(|one| *one == status).unwrap_or_default();
    PICTURES.get(at).map_or(&[], Vec::as_slice)
}

/// Whether a point is inside the shape of a status. Coordinates run from -1 to 1.
fn contains(status: Status, x: f32, y: f32) -> bool {
    let from_middle = x.hypot(y);
    let ring = (0.55..0.9).contains(&from_middle);
    let cross = (x - y).abs() < 0.36 || (x + y).abs() < 0.36;
    match status {
        // A triangle, like a warning sign.
        Status::NeedsPermission => y < 0.8 && y > -0.9 + 1.9 * x.abs(),
        // A diamond.
        Status::NeedsInput => x.abs() + y.abs() < 0.95,
        // A ring, crossed out.
        Status::PermissionLost => ring || from_middle < 0.9 && (x - y).abs() < 0.3,
        // A square.
        Status::Stuck => x.abs() < 0.75 && y.abs() < 0.75,
        // A cross.
        Status::Crashed => cross && x.abs() < 0.85 && y.abs() < 0.85,
        // A disc with a bar.
        Status::Failed => from_middle < 0.9 && !(x.abs() < 0.6 && y.abs() < 0.2),
        // A broken ring.
        Status::Quiet => ring && x.abs() > 0.2 && y.abs() > 0.2,
        // An arrow head pointing right: filled, or an outline.
        Status::Working => x > -0.7 && x < 0.9 - 1.7 * y.abs(),
        Status::Finishing => x > -0.7 && x < 0.9 - 1.7 * y.abs() && !(x > -0.4 && x < 0.35 - 1.7 * y.abs()),
        // A disc.
        Status::Idle => from_middle < 0.6,
        // A ring.
        Status::Ended => ring,
    }
}

const fn colour(status: Status) -> [u8; 3] {
    match status {
        Status::NeedsPermission | Status::NeedsInput | Status::PermissionLost => AMBER,
        Status::Stuck | Status::Crashed | Status::Failed => RED,
        Status::Quiet | Status::Working | Status::Finishing => BLUE,
        Status::Idle => GREEN,
        Status::Ended => GREY,
    }
}

fn draw(status: Status) -> Picture {
    Picture { width: SIZE.into(), height: SIZE.into(), rgba: pixels(status) }
}

fn pixels(status: Status) -> Vec<u8> {
    // The edge must fit, too.
    let scale = f32::from(SIZE * SAMPLES) / f32::from(SIZE * SAMPLES - 2 * EDGE);
    let middle = f32::from(SIZE * SAMPLES) / 2.0;
    let coordinate = |at: u16| (f32::from(at) + 0.5 - middle) / middle * scale;
    let samples = 0..SIZE * SAMPLES;
    let shape: Vec<Vec<bool>> = samples
        .clone()
        .map(|y| samples.clone().map(|x| contains(status, coordinate(x), coordinate(y))).collect())
        .collect();
    let is_shape = |x: u16, y: u16| shape[usize::from(y)][usize::from(x)];
    let near = |at: u16| at.saturating_sub(EDGE)..=(at + EDGE).min(SIZE * SAMPLES - 1);
    let is_edge = |x: u16, y: u16| {
        let mut around = near(y).flat_map(|other| near(x).map(move |x| (x, other)));
        around.any(|(nx, ny)| is_shape(nx, ny) && nx.abs_diff(x).pow(2) + ny.abs_diff(y).pow(2) <= EDGE * EDGE)
    };
    let pixel = |x: u16, y: u16| {
        let inner = (0..SAMPLES).flat_map(|dy| (0..SAMPLES).map(move |dx| (x * SAMPLES + dx, y * SAMPLES + dy)));
        let (mut inside, mut edge) = (0, 0);
        for (x, y) in inner {
            if is_shape(x, y) {
                inside += 1;
            } else if is_edge(x, y) {
                edge += 1;
            }
        }
        mixed(colour(status), inside, edge)
    };
    (0..SIZE).flat_map(|y| (0..SIZE).flat_map(move |x| pixel(x, y))).collect()
}

/// A pixel of which so many samples have this colour, and so many are white.
fn mixed(colour: [u8; 3], inside: u16, edge: u16) -> [u8; 4] {
    let covered = (inside + edge).max(1);
    let part = |at: usize| (u16::from(colour[at]) * inside + u16::from(WHITE[at]) * edge) / covered;
    let alpha = (inside + edge) * 255 / (SAMPLES * SAMPLES);
    [part(0), part(1), part(2), alpha].map(|part| u8::try_from(part).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_own_shape() {
        let opaque = |status| pixels(status).chunks(4).map(|pixel| is_drawn(pixel, status)).collect::<Vec<_>>();
        for (n, one) in Status::ALL.iter().enumerate() {
            let drawn = super::super::picture::decode(badge(*one)).unwrap();
            assert_eq!((drawn.width, drawn.height, &drawn.rgba), (16, 16, &pixels(*one)));
            for other in &Status::ALL[n + 1..] {
                let differ = opaque(*one).iter().zip(opaque(*other)).filter(|(a, b)| **a != *b).count();
                assert!(differ >= 16, "{one} and {other} differ by only {differ} pixels besides their colours");
            }
        }
    }

    /// Whether a pixel is of the shape's own colour.
    fn is_drawn(pixel: &[u8], status: Status) -> bool {
        pixel[3] > 127 && colour(status).iter().zip(pixel).all(|(wanted, has)| wanted.abs_diff(*has) < 60)
    }

    /// Relative luminance, as WCAG 2 defines it.
    fn luminance(colour: &[u8]) -> f64 {
        let linear = |part: u8| match f64::from(part) / 255.0 {
            part if part <= 0.040_45 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
    }

    fn contrast(one: &[u8], other: &[u8]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// WCAG 2.1 asks 3:1 of a picture that carries meaning. No colour has that on all of these menus and is still amber,
    /// but each shape is also an outline.
    #[test]
    fn case_210_a_picture_is_seen_on_light_and_dark_menus_and_on_their_highlights() {
        // Menus of Adwaita, Breeze and LXQt, light and dark; the highlights of Adwaita, Breeze, LXQt and Greybird.
        let menus = [[0xff, 0xff, 0xff], [0xef, 0xf0, 0xf1], [0x2d, 0x2d, 0x2d], [0x31, 0x36, 0x3b]];
        let highlights = [[0x35, 0x84, 0xe4], [0x15, 0x53, 0x9e], [0x30, 0x8c, 0xc6], [0x39, 0x87, 0xd6]];
        for status in Status::ALL {
            for menu in &menus {
                let seen = contrast(&colour(status), menu);
                assert!(seen >= 2.7, "{status} on {menu:x?}: {seen:.2}");
            }
            for highlight in &highlights {
                let seen = contrast(&colour(status), highlight).max(contrast(&WHITE, highlight));
                assert!(seen >= 3.0, "{status} on {highlight:x?}: {seen:.2}");
            }
            // Every pixel of the shape that meets the menu does so over white.
            let (width, rgba) = (usize::from(SIZE), pixels(status));
            let at = |x: usize, y: usize| &rgba[(y * width + x) * 4..][..4];
            for (x, y) in
                (0..width).flat_map(|y| (0..width).map(move |x| (x, y))).filter(|(x, y)| is_drawn(at(*x, *y), status))
            {
                let around = [(x.wrapping_sub(1), y), (x + 1, y), (x, y.wrapping_sub(1)), (x, y + 1)];
                for (x, y) in around {
                    assert!(x < width && y < width && at(x, y)[3] > 60, "{status} has no edge at {x}, {y}");
                }
            }
        }
    }
}
