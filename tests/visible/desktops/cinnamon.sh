# shellcheck shell=bash disable=SC2034
# The popups of Cinnamon's shell, as a window manager on X11. Its tray for status icons of this kind (xapp-sn-watcher) is not
# in Debian 12.

PACKAGES=(cinnamon:cinnamon '/usr/lib/*/dri/swrast_dri.so:libgl1-mesa-dri')
VARIANTS=(light:1280x800)
ENVIRONMENT=(GSETTINGS_BACKEND=keyfile XDG_CURRENT_DESKTOP=X-Cinnamon XDG_SESSION_TYPE=x11 DESKTOP_SESSION=cinnamon)

put_up_popups() {
    gsettings set org.cinnamon panels-enabled "['1:0:bottom']"
    gsettings set org.cinnamon.desktop.background picture-options none
    gsettings set org.cinnamon.desktop.background primary-color '#3b4252'
    begin cinnamon --replace
    until_true 60 'the shell' has org.Cinnamon
}
