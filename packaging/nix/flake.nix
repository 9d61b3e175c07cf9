# Pilotlight for Nix, on Linux: nix profile install 'git+https://github.com/pilotlight/pilotlight?dir=packaging/nix'
{
  description = "Shows what your coding agents are doing, and lets you fix what is wrong with one click";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      manifest = builtins.fromTOML (builtins.readFile ../../Cargo.toml);
      # What the package has from the workspace stands there.
      crate = manifest.package // manifest.workspace.package;
      package =
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.rustPlatform.buildRustPackage {
          pname = crate.name;
          inherit (crate) version;
          src = ../..;
          cargoLock.lockFile = ../../Cargo.lock;
          buildType = "dist";
          cargoBuildFlags = [
            "--bin"
            "pilotlight"
          ];
          # The tests need the Copilot CLI, tmux and a session bus.
          doCheck = false;
          postInstall = ''
            bash packaging/linux/install.sh "$out/bin/pilotlight" "" "$out"
          '';
          meta = {
            inherit (crate) description;
            homepage = crate.repository;
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "pilotlight";
            platforms = systems;
          };
        };
    in
    {
      packages = builtins.listToAttrs (
        map (system: {
          name = system;
          value.default = package system;
        }) systems
      );
    };
}
