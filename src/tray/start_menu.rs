//! What a Windows desktop must know of the program: its name in notifications, its entry in the Start menu, and that the light
//! needs no console window.
//!
//! Windows decides by a mark in the file whether a program gets a console, before the program can say what it is going to do.
//! So there are two of them, as many have it: `pilotlight.exe` has one and is for commands, `pilotlightw.exe` has none and is
//! what the Start menu and the login start. Started from elsewhere than a terminal, the first one asks for none as well (its
//! manifest does, since Windows 11 24H2), or closes the one that it was given.
#![allow(unsafe_code)]

use crate::system::paths::own_program;
use std::path::{Path, PathBuf};
use windows::Win32::Storage::EnhancedStorage::PKEY_AppUserModel_ID;
use windows::Win32::System::Com::StructuredStorage::PROPVARIANT;
use windows::Win32::System::Com::{
    CLSCTX_INPROC_SERVER, COINIT_APARTMENTTHREADED, CoCreateInstance, CoInitializeEx, CoUninitialize, IPersistFile,
};
use windows::Win32::UI::Shell::PropertiesSystem::IPropertyStore;
use windows::Win32::UI::Shell::{IShellLinkW, SetCurrentProcessExplicitAppUserModelID, ShellLink};
use windows::core::{HSTRING, Interface, Result, w};
use windows_sys::Win32::System::Console::{FreeConsole, GetConsoleProcessList};

/// Who sends our notifications, to Windows. The installer gives its shortcut the same one.
pub(crate) const APP_ID: &str = "Pilotlight.Pilotlight";
/// The program without a console, beside the one with it.
const WINDOWLESS: &str = "pilotlightw.exe";
/// Where the Start menu's entries are, below the folder of settings of a user, or of all.
const PROGRAMS: &str = r"Microsoft\Windows\Start Menu\Programs";

/// Makes the program at home on the desktop, before the icon is put up. What cannot be done is logged, and lacks.
pub(crate) fn settle() {
    close_own_console();
    // SAFETY: takes a text that lives as long as the call.
    if let Err(error) = unsafe { SetCurrentProcessExplicitAppUserModelID(&HSTRING::from(APP_ID)) } {
        tracing::info!("notifications have another program's name: {error}");
    }
    // A program that is being developed has no place in the Start menu.
    if cfg!(debug_assertions) {
        return;
    }
    let Some(program) = own_program().map(for_the_tray) else { return };
    let folders = ["APPDATA", "ProgramData"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [own, all] = folders.map(|folder| Some(folder?.join(PROGRAMS).join("Pilotlight.lnk")));
    let Some(link) = own.filter(|link| !link.exists() && !all.is_some_and(|all| all.exists())) else { return };
    let work = move || {
        if let Err(error) = put(&link, &program) {
            tracing::info!("there is no entry in the Start menu: {} cannot be made: {error}", link.display());
        }
    };
    // On a thread of its own: the main one is set up for windows by who owns it.
    let _ = std::thread::Builder::new().name("start menu".into()).spawn(work);
}

/// The program that is to be started for the light: the one without a console, where it stands beside this one.
pub(crate) fn for_the_tray(program: PathBuf) -> PathBuf {
    let windowless = program.with_file_name(WINDOWLESS);
    if windowless.is_file() { windowless } else { program }
}

/// Closes a console window that was opened for this program alone. One that a shell shares with us is the user's.
fn close_own_console() {
    let mut users = [0; 2];
    // SAFETY: the list is as long as is said. Its value is how many there are, 0 where there is no console.
    if unsafe { GetConsoleProcessList(users.as_mut_ptr(), 2) } == 1 {
        // SAFETY: takes nothing.
        unsafe { FreeConsole() };
    }
}

/// Makes a shortcut that starts the light, and carries [`APP_ID`]: by it Windows knows whose notifications these are.
fn put(link: &Path, program: &Path) -> Result<()> {
    // SAFETY: this thread is ours, and every object is gone before the library is.
    unsafe {
        CoInitializeEx(None, COINIT_APARTMENTTHREADED).ok()?;
        let made = (|| {
            let shortcut: IShellLinkW = CoCreateInstance(&ShellLink, None, CLSCTX_INPROC_SERVER)?;
            shortcut.SetPath(&HSTRING::from(program))?;
            shortcut.SetArguments(w!("tray"))?;
            shortcut.SetDescription(w!("A pilot light for your coding agents"))?;
            let properties: IPropertyStore = shortcut.cast()?;
            properties.SetValue(&PKEY_AppUserModel_ID, &PROPVARIANT::from(APP_ID))?;
            properties.Commit()?;
            shortcut.cast::<IPersistFile>()?.Save(&HSTRING::from(link), true)
        })();
        CoUninitialize();
        made
    }
}
