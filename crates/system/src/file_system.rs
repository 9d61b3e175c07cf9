//! Which file systems may change without a file event: what another machine writes reaches this kernel as new contents,
//! never as an event. A file system in user space (FUSE) may be one of these, and does not say: it counts as one.

use std::path::Path;

/// What a folder is on, in a word for the user, if the system may not report changes there. `None` also where that
/// cannot be read: the folder is gone, or its file events tell more than this.
#[cfg(target_os = "linux")]
pub fn without_file_events(folder: &Path) -> Option<&'static str> {
    kind(rustix::fs::statfs(folder).ok()?.f_type as u64)
}

/// The file system that `statfs` reports with this number, if it may change without an event. The kernel's own are from
/// `linux/magic.h`, listed in statfs(2), but for VirtualBox's, which is from `fs/vboxsf/super.c`; those of modules from
/// outside the kernel are as coreutils' `stat` knows them. The type of the number differs between architectures, but all
/// have 32 bits. virtiofs and sshfs are FUSE by their number.
#[cfg(target_os = "linux")]
const fn kind(number: u64) -> Option<&'static str> {
    Some(match number & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x786f_4256 => "a VirtualBox share",
        0xbacb_acbc => "a VMware share",
        0x7c7c_6673 => "a Parallels share",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        _ => return None,
    })
}

/// Whether a path is on a file system that shows its files with other devices than the kernel lists for their locks: one with
/// subvolumes, or one made of others. The numbers are as for [`kind`].
#[cfg(target_os = "linux")]
pub fn has_devices_of_its_own(path: &Path) -> bool {
    /// bcachefs, btrfs, overlay, ZFS.
    const SUCH: [u64; 4] = [0xca45_1a4e, 0x9123_683e, 0x794c_7630, 0x2fc1_2fc1];
    rustix::fs::statfs(path).is_ok_and(|stat| SUCH.contains(&(stat.f_type as u64 & 0xffff_ffff)))
}

/// The same: no other system lists locks.
#[cfg(not(target_os = "linux"))]
pub const fn has_devices_of_its_own(_: &Path) -> bool {
    false
}

/// What a folder is on, in a word for the user, if the system may not report changes there: FSEvents reports those made
/// on this machine.
#[cfg(target_os = "macos")]
pub fn without_file_events(folder: &Path) -> Option<&'static str> {
    /// `MNT_LOCAL` of `sys/mount.h`: the file system is stored locally.
    const LOCAL: u32 = 0x1000;
    (rustix::fs::statfs(folder).ok()?.f_flags & LOCAL == 0).then_some("a network volume")
}

/// What a folder is on, in a word for the user, if the system may not report changes there: a drive that is mapped to a
/// share has the share's name in its real path, and so has a folder of WSL.
#[cfg(windows)]
pub fn without_file_events(folder: &Path) -> Option<&'static str> {
    use std::path::{Component, Prefix};
    let real = folder.canonicalize().ok()?;
    let Some(Component::Prefix(prefix)) = real.components().next() else { return None };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)).then_some("a network share")
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn case_161_file_systems_that_others_write_to_are_told_from_local_ones_by_their_number() {
        let none =
            [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0xf2f5_2010, 0xf15f, 0x9fa0];
        assert_eq!(none.map(kind), [None; 9], "ext4, btrfs, XFS, tmpfs, overlay, ZFS, F2FS, eCryptfs, proc");
        assert_eq!([0x6969, 0x6573_5546, 0x0102_1997].map(kind), [Some("NFS"), Some("FUSE"), Some("9p")]);
        // As a signed number of 32 bits: i386, s390x.
        let cifs = i64::from(0xff53_4d42_u32.cast_signed()).cast_unsigned();
        assert_eq!((kind(cifs), kind(0xff53_4d42)), (Some("SMB"), Some("SMB")));
        assert_eq!(without_file_events(Path::new("/proc/self")), None);
        assert_eq!(without_file_events(Path::new("/proc/self/nothing")), None);
    }
}
