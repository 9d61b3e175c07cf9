//! The small pictures next to the rows of the menu, for panels that draw them. Each status has its own shape, so that
//! none depends on colour alone. The marks in the texts of the rows show the same.

use super::picture::Picture;
use crate::core::verdict::Status;
use std::sync::LazyLock;

/// Width and height in pixels, as menus draw them.
const SIZE: u16 = 16;
/// Samples per pixel in each direction, for antialiasing.
const SAMPLES: u16 = 4;

const AMBER: [u8; 3] = [0xe5, 0x98, 0x00];
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
    let [red, green, blue] = colour(status);
    let middle = f32::from(SIZE * SAMPLES) / 2.0;
    let coordinate = |at: u16| (f32::from(at) + 0.5 - middle) / middle;
    let inner = || (0..SAMPLES).flat_map(|y| (0..SAMPLES).map(move |x| (x, y)));
    let pixel = |x: u16, y: u16| {
        let is_inside = |x: u16, y: u16| contains(status, coordinate(x), coordinate(y));
        let inside = inner().filter(|(dx, dy)| is_inside(x * SAMPLES + dx, y * SAMPLES + dy)).count();
        [red, green, blue, u8::try_from(inside * 255 / usize::from(SAMPLES * SAMPLES)).unwrap_or(u8::MAX)]
    };
    (0..SIZE).flat_map(|y| (0..SIZE).flat_map(move |x| pixel(x, y))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_own_shape() {
        let opaque = |status| pixels(status).chunks(4).map(|pixel| pixel[3] > 127).collect::<Vec<_>>();
        for (n, one) in Status::ALL.iter().enumerate() {
            let drawn = super::super::picture::decode(badge(*one)).unwrap();
            assert_eq!((drawn.width, drawn.height, &drawn.rgba), (16, 16, &pixels(*one)));
            for other in &Status::ALL[n + 1..] {
                let differ = opaque(*one).iter().zip(opaque(*other)).filter(|(a, b)| **a != *b).count();
                assert!(differ >= 16, "{one} and {other} differ by only {differ} pixels besides their colours");
            }
        }
    }
}
