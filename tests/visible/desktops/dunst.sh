# shellcheck shell=bash disable=SC2034
# dunst's popups: it draws no buttons, and a click with the middle button is the default action.

PACKAGES=(dunst:dunst openbox:openbox)
VARIANTS=(light:1024x600)
ENVIRONMENT=(XDG_CURRENT_DESKTOP=dunst)
BODY_BUTTON=2

put_up_popups() {
    begin openbox
    begin dunst
}
