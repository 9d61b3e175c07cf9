//! Integrates the program with a Windows desktop: its name in notifications, its entry in the Start menu, and no
//! console window for the tray.
//!
//! Windows decides by a flag in the executable whether a program gets a console, before it runs. So there are two
//! programs, as is common: `pilotlight.exe` has a console and is for commands; `pilotlightw.exe` has none, and is
//! started by the Start menu and at login. Outside a terminal the former gets no console either, by its manifest from
//! Windows 11 24H2 on; before that, it closes the one that it got.
#![allow(unsafe_code)]

use pilotlight_system::log::{self, cause, private};
use pilotlight_system::paths::own_program;
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

/// The AppUserModelID by which Windows attributes our notifications. The installer's shortcut has the same one.
pub(crate) const APP_ID: &str = "Pilotlight.Pilotlight";
/// The program without a console, in the same folder as the one with it.
const WINDOWLESS: &str = "pilotlightw.exe";
/// The Start menu's folder, below the application data folder of a user or of all users.
const PROGRAMS: &str = r"Microsoft\Windows\Start Menu\Programs";

/// Integrates the program with the desktop, before the icon is shown. Failures are only logged.
pub(crate) fn integrate() {
    close_own_console();
    // SAFETY: the string outlives the call.
    if let Err(error) = unsafe { SetCurrentProcessExplicitAppUserModelID(&HSTRING::from(APP_ID)) } {
        log::info!("notifications appear under another program's name: {}", cause(&error));
    }
    // Development builds get no entry in the Start menu.
    if cfg!(debug_assertions) {
        return;
    }
    let Some(program) = own_program().map(for_the_tray) else { return };
    let folders = ["APPDATA", "ProgramData"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [own, all] = folders.map(|folder| Some(folder?.join(PROGRAMS).join("Pilotlight.lnk")));
    let Some(link) = own.filter(|link| !link.exists() && !all.is_some_and(|all| all.exists())) else { return };
    let work = move || {
        if let Err(error) = create_shortcut(&link, &program) {
            log::info!(
                "there is no entry in the Start menu: {} cannot be created: {}",
                private(&link.display()),
                cause(&error)
            );
        }
    };
    // On its own thread: the event loop initializes COM on the main thread.
    let _ = std::thread::Builder::new().name("start menu".into()).spawn(work);
}

/// The program to start for the tray: the one without a console, if it is in the same folder.
pub(crate) fn for_the_tray(program: PathBuf) -> PathBuf {
    let windowless = program.with_file_name(WINDOWLESS);
    if windowless.is_file() { windowless } else { program }
}

/// Closes a console that was opened for this program alone. One shared with a shell is the user's.
fn close_own_console() {
    let mut users = [0; 2];
    // SAFETY: the length is that of the array. Returns the number of processes, 0 without a console.
    if unsafe { GetConsoleProcessList(users.as_mut_ptr(), 2) } == 1 {
        // SAFETY: takes no arguments.
        unsafe { FreeConsole() };
    }
}

/// Creates a shortcut that starts the tray and carries [`APP_ID`], by which Windows attributes notifications.
fn create_shortcut(link: &Path, program: &Path) -> Result<()> {
    // SAFETY: this is our own thread, and every COM object is dropped before `CoUninitialize`.
    unsafe {
        CoInitializeEx(None, COINIT_APARTMENTTHREADED).ok()?;
        let result = (|| {
            let shortcut: IShellLinkW = CoCreateInstance(&ShellLink, None, CLSCTX_INPROC_SERVER)?;
            shortcut.SetPath(&HSTRING::from(program))?;
            shortcut.SetArguments(w!("tray"))?;
            shortcut.SetDescription(w!(
                "Shows what your coding agents are doing, and lets you fix what is wrong with one click"
            ))?;
            let properties: IPropertyStore = shortcut.cast()?;
            properties.SetValue(&PKEY_AppUserModel_ID, &PROPVARIANT::from(APP_ID))?;
            properties.Commit()?;
            shortcut.cast::<IPersistFile>()?.Save(&HSTRING::from(link), true)
        })();
        CoUninitialize();
        result
    }
}
