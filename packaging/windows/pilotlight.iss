; The installer, made with Inno Setup 6.3 or later:
;
;   iscc /DVersion=0.1.0 /DPrograms=FOLDER packaging\windows\pilotlight.iss
;
; FOLDER contains pilotlight.exe and pilotlightw.exe. It installs for one user, and needs no administrator rights.

#ifndef Version
  #error Say which version: /DVersion=0.1.0
#endif
#ifndef Programs
  #error Say where the programs are: /DPrograms=target\dist
#endif

[Setup]
AppId={{6C0B7C1E-4D3B-4B5E-9A52-0F3D8E1C7A64}
AppName=Pilotlight
AppVersion={#Version}
AppPublisher=The Pilotlight developers
DefaultDirName={autopf}\Pilotlight
DisableProgramGroupPage=yes
DisableDirPage=auto
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
SetupIconFile=..\..\assets\icon\pilotlight.ico
UninstallDisplayIcon={app}\pilotlight.exe
LicenseFile=..\..\LICENSE-MIT
OutputBaseFilename=pilotlight-{#Version}-x64-setup
Compression=lzma2
SolidCompression=yes
ChangesEnvironment=yes
; A running tray is asked to exit. The last page offers to start it again, and it starts at the next login if that is enabled.
CloseApplications=yes
RestartApplications=no

[Files]
Source: "{#Programs}\pilotlight.exe"; DestDir: "{app}"; Flags: ignoreversion
Source: "{#Programs}\pilotlightw.exe"; DestDir: "{app}"; Flags: ignoreversion
Source: "..\..\LICENSE-MIT"; DestDir: "{app}"
Source: "..\..\LICENSE-APACHE"; DestDir: "{app}"

[Tasks]
Name: path; Description: "Add the command ""pilotlight"" to the PATH"
Name: login; Description: "Start at login"; Flags: unchecked

[Icons]
; Windows attributes notifications by AppUserModelID: the same as in src/tray/start_menu.rs.
Name: "{autoprograms}\Pilotlight"; Filename: "{app}\pilotlightw.exe"; Parameters: "tray"; AppUserModelID: "Pilotlight.Pilotlight"

[Registry]
; The same value as "Start at login" in the menu writes; an upgrade leaves it unchanged.
Root: HKCU; Subkey: "Software\Microsoft\Windows\CurrentVersion\Run"; ValueType: string; ValueName: "Pilotlight"; \
    ValueData: """{app}\pilotlightw.exe"" tray"; Tasks: login; Check: IsFirst
Root: HKCU; Subkey: "Software\Microsoft\Windows\CurrentVersion\Run"; ValueType: none; ValueName: "Pilotlight"; \
    Flags: uninsdeletevalue dontcreatekey
Root: HKCU; Subkey: "Environment"; ValueType: expandsz; ValueName: "Path"; ValueData: "{olddata};{app}"; \
    Check: IsMissingOnPath(ExpandConstant('{app}')); Tasks: path

[Run]
Filename: "{app}\pilotlightw.exe"; Parameters: "tray"; Description: "Start Pilotlight now"; Flags: nowait postinstall skipifsilent

[Code]
var
  First: Boolean;

function InitializeSetup: Boolean;
begin
  First := not RegKeyExists(HKCU,
    'Software\Microsoft\Windows\CurrentVersion\Uninstall\{6C0B7C1E-4D3B-4B5E-9A52-0F3D8E1C7A64}_is1');
  Result := True;
end;

function IsFirst: Boolean;
begin
  Result := First;
end;

function IsMissingOnPath(Folder: string): Boolean;
var
  Path: string;
begin
  Result := not RegQueryStringValue(HKCU, 'Environment', 'Path', Path)
    or (Pos(';' + Lowercase(Folder) + ';', ';' + Lowercase(Path) + ';') = 0);
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Path, Folder: string;
  At: Integer;
begin
  Folder := ';' + ExpandConstant('{app}');
  if (Step = usPostUninstall) and RegQueryStringValue(HKCU, 'Environment', 'Path', Path) then begin
    At := Pos(Lowercase(Folder) + ';', Lowercase(Path) + ';');
    if At > 0 then begin
      Delete(Path, At, Length(Folder));
      RegWriteExpandStringValue(HKCU, 'Environment', 'Path', Path);
    end;
  end;
end;
