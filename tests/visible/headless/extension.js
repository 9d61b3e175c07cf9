// Pictures of GNOME's shell where it has no window, with a mouse and keys, over the bus (tests/visible/desktops/gnome-wayland.sh).
import Clutter from 'gi://Clutter';
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import Shell from 'gi://Shell';
import {Extension} from 'resource:///org/gnome/shell/extensions/extension.js';
import * as Main from 'resource:///org/gnome/shell/ui/main.js';

const INTERFACE = `<node><interface name="tests.Headless">
    <method name="Move"><arg type="i" direction="in"/><arg type="i" direction="in"/></method>
    <method name="Place"><arg type="i" direction="out"/><arg type="i" direction="out"/></method>
    <method name="Button"><arg type="i" direction="in"/><arg type="b" direction="in"/></method>
    <method name="Key"><arg type="s" direction="in"/></method>
    <method name="LeaveOverview"/>
    <method name="Picture"><arg type="s" direction="in"/></method>
</interface></node>`;

export default class Headless extends Extension {
    enable() {
        const seat = global.stage.get_context().get_backend().get_default_seat();
        this._mouse = seat.create_virtual_device(Clutter.InputDeviceType.POINTER_DEVICE);
        this._keys = seat.create_virtual_device(Clutter.InputDeviceType.KEYBOARD_DEVICE);
        this._object = Gio.DBusExportedObject.wrapJSObject(INTERFACE, this);
        this._object.export(Gio.DBus.session, '/tests/Headless');
    }

    disable() {
        this._object.unexport();
        this._mouse = this._keys = this._object = null;
    }

    Move(x, y) {
        this._mouse.notify_absolute_motion(GLib.get_monotonic_time(), x, y);
    }

    Place() {
        const [x, y] = global.get_pointer();
        return [Math.round(x), Math.round(y)];
    }

    Button(button, isDown) {
        const state = isDown ? Clutter.ButtonState.PRESSED : Clutter.ButtonState.RELEASED;
        this._mouse.notify_button(GLib.get_monotonic_time(), button, state);
    }

    Key(name) {
        for (const state of [Clutter.KeyState.PRESSED, Clutter.KeyState.RELEASED])
            this._keys.notify_keyval(GLib.get_monotonic_time(), Clutter[`KEY_${name}`], state);
    }

    LeaveOverview() {
        Main.overview.hide();
    }

    PictureAsync([path], invocation) {
        const stream = Gio.File.new_for_path(path).replace(null, false, Gio.FileCreateFlags.NONE, null);
        new Shell.Screenshot().screenshot(false, stream).then(() => {
            stream.close(null);
            invocation.return_value(null);
        }).catch(error => invocation.return_dbus_error('tests.Headless.Failed', `${error}`));
    }
}
