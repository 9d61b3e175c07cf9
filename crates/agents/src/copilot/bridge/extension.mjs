// The bridge lets Pilotlight stop, answer and approve in a Copilot session that runs in a plain terminal.
//
// Copilot starts a process of this extension with each interactive session, with its own runtime and its own SDK. The
// extension joins the session silently, connects to Pilotlight over a Unix socket, reports what the session asks its
// user, and does what the user clicks in Pilotlight. It listens nowhere, writes no file and decides nothing: in case of
// doubt it does nothing, and the dialog in the terminal stays open. SECURITY.md says what it is trusted with; CALLS is
// the complete list of its requests to Copilot.

import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync, watch } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { joinSession } from "@github/copilot-sdk/extension";

const VERSION = 2; // protocol version
const SOCKET = "bridge.sock";
const LINE_MAX = 1 << 20; // the longest line in either direction, in characters
const TEXTS_MAX = [1 << 16, 1 << 12, 1 << 8]; // the longest text in a line that would be longer, tried in this order
const CUT = "(too large for Pilotlight)"; // in place of a longer one, as in crates/agents/src/copilot/server/shorten.rs
const DRAWING = 250; // in ms: how long Copilot is watched to see whether it still draws
const LARGE = 1 << 14; // the longest request, in characters of JSON, that is drawn at once
const CALM = 2; // how often in a row Copilot must be seen not to draw, after a longer one,
const PREPARED = 20000; // and how long its other threads may take to prepare that, in ms: later they do something else
const FRESH = 500; // in ms: how old the word of Copilot and of the listener may be when an order is carried out
const ENDING = 3000; // in ms: how long Copilot may count a turn as work after its last event: on a busy machine, over a second;
const AGAIN = 100; // and how often it is asked meanwhile, in ms
const LATE = 1500; // in ms: a remembered consent is mostly granted sooner; one that takes longer may be a dialog
const ROOTS_MAX = 1000; // the most event ids remembered of a turn
const ASKED_MAX = 16; // the most open questions remembered, to resend to the next listener
const CLOSED_MAX = 64; // the most answered requests remembered
const TRIES = 3; // the retries for a listener that rejects or disconnects us,
const TRY_AFTER = 5000; // the delay before the first, in ms, doubled each time,
const SETTLED = 60000; // and how long a connection must last, in ms, to reset the count
const NAME = "plugin:pilotlight:pilotlight"; // our name in Copilot's record of consents
const FORWARDED = new Set([
  "abort",
  "elicitation.completed",
  "elicitation.requested",
  "exit_plan_mode.completed",
  "exit_plan_mode.requested",
  "permission.completed",
  "permission.requested",
  "session.error",
  "session.idle",
  "session.shutdown",
]);
const OPENS = new Set(["assistant.turn_start", "tool.execution_start", "user.message"]); // a turn, if none is open
const ENDS = new Set(["abort", "session.error", "session.idle", "session.shutdown"]); // a turn, with its questions

// All requests to Copilot.
const CALLS = {
  abort: () => session.abort(),
  send: (prompt) => session.send({ prompt }),
  activity: () => session.rpc.metadata.activity(),
  pending: () => session.rpc.permissions.pendingRequests(),
  mode: () => session.rpc.permissions.getMode(),
  tail: () => session.rpc.eventLog.tail(),
  read: (cursor, waitMs) =>
    session.rpc.eventLog.read({ cursor, waitMs, types: ["assistant.streaming_delta"], max: 1, agentScope: "all" }),
  answer: (requestId, result) => session.rpc.ui.handlePendingElicitation({ requestId, result }),
  plan: (requestId, response) => session.rpc.ui.handlePendingExitPlanMode({ requestId, response }),
  permit: (requestId, result) => session.rpc.permissions.handlePendingPermissionRequest({ requestId, result }),
  // Requests the right to answer permission requests on this connection. Copilot asks its user.
  elevate: () =>
    session.connection.sendRequest("session.resume", {
      sessionId: session.sessionId,
      requestPermission: true,
      disableResume: true,
      envValueMode: "direct",
    }),
};

const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url))).digest("hex");
const settings = json(new URL("./bridge.json", import.meta.url));
const key = settings?.v === VERSION ? bytes(settings.key) : null;
// Exit: a process that neither joins nor exits leaves "Loading" in the terminal's last line. A file that is not the one
// that Pilotlight installed does not run.
if (!key?.length || !Array.isArray(settings.folders) || settings.hash !== hash) process.exit(0);

let session;
try {
  session = await joinSession({});
} catch {
  process.exit(0);
}

// The state of the session.
let elevated = false; // whether we may answer permission requests
let consenting = false; // whether Copilot may be asking its user about us
let refused = false; // whether the user refused: every further request fails in this session
let byItself = true; // whether a remembered consent may be used
let due = false; // whether the user has sent the prompt of the running turn, after which it is used
let roots = []; // the event ids of the last turn; empty if none was seen since we joined
let working = false; // whether that turn is running
let answered = false; // whether its last message requests no tools
let cwd = process.cwd(); // the session's working folder: `/cwd` changes it, but not ours
let consentedIn = place(); // the place that the consent is for
const copilotStarted = startOf(process.ppid); // start time of Copilot's process, in ms
let toolRan = wasPrompted(); // whether a tool of this session may have run since then
let kept = null; // the listener that may have requests approved: its process
let given = false; // whether the user has just answered Copilot's question about us
const asked = new Map(); // the open questions, by id: no call lists them
const schemas = new Map(); // the forms that open tools of the agent ask with, by tool call: Copilot's event omits the limits
const closed = new Set(); // ids of the last requests that were answered: Copilot may still list them for a moment
const large = new Set(); // ids of open requests that take long to be drawn
const managed = new Set(); // ids of requests that by an organisation's policy a person must answer

session.on((event) => {
  try {
    follow(event);
  } catch {
    // No event may end the bridge.
  }
});

function follow(event) {
  const { type, data, agentId } = event;
  if (!agentId) followTurn(event);
  if (type === "session.context_changed" && !agentId && typeof data?.cwd === "string") {
    const before = mayAnswer();
    cwd = data.cwd;
    if (mayAnswer() !== before) sayConsent();
  }
  if (type === "session.permissions_changed") sayMode();
  if (type === "permission.requested") {
    // Only the user may answer Copilot's question about us.
    if (isAboutUs(data?.permissionRequest)) return;
    if (data?.permissionRequest?.managedApprovalRequired) managed.add(data.requestId);
    if (isLarge(data?.promptRequest)) large.add(data.requestId);
  }
  if (type === "permission.completed") {
    [managed, large].forEach((one) => one.delete(data?.requestId));
    closed.add(data?.requestId);
    if (closed.size > CLOSED_MAX) closed.delete(closed.values().next().value);
    if (consenting && data?.result?.kind === "approved") given = true; // nothing else is open then
    setImmediate(elevateByItself);
  }
  if (type === "tool.execution_start") toolRan = true;
  if (type === "tool.execution_start" && data?.toolName === "ask_user" && schemas.size < ASKED_MAX) {
    schemas.set(data.toolCallId, data.arguments?.requestedSchema);
  }
  if (type === "tool.execution_complete") schemas.delete(data?.toolCallId);
  if (!FORWARDED.has(type)) return;
  const mark = data?.promptRequest && shown(data.promptRequest);
  // Both forms of a request have its whole text: the one that the terminal shows is enough.
  const { permissionRequest, ...rest } = data ?? {};
  if (type === "elicitation.requested") rest.asked = schemas.get(data?.toolCallId);
  const told = { t: "event", type, agentId, timestamp: event.timestamp, data: rest, mark };
  if (/^(elicitation|exit_plan_mode)\.requested$/.test(type) && asked.size < ASKED_MAX) asked.set(data?.requestId, told);
  if (/^(elicitation|exit_plan_mode)\.completed$/.test(type)) asked.delete(data?.requestId);
  if (ENDS.has(type) && !agentId) [asked, schemas].forEach((one) => one.clear());
  say(told);
}

// Reports whether Copilot approves everything without asking. Older releases do not tell.
function sayMode() {
  Promise.resolve()
    .then(CALLS.mode)
    .then(({ mode }) => say({ t: "mode", all: mode === "allow-all" }), () => {});
}

// Tracks the last turn. Steering prompts, and prompts that Copilot gives itself in autopilot, belong to the running
// turn.
function followTurn({ type, data, id, ephemeral }) {
  const goesOn = data?.delivery === "steering" || data?.isAutopilotContinuation;
  if (type === "user.message" ? !goesOn || !working : OPENS.has(type) && !working) {
    if (!data?.isAutopilotContinuation) roots = [];
    sayMode();
    [working, answered] = [true, false];
  }
  if (type === "user.message") {
    due = data?.agentMode !== "autopilot";
    setImmediate(elevateByItself);
  }
  if (type === "assistant.message") answered = !data?.toolRequests?.length;
  if (ENDS.has(type) || (type === "assistant.turn_end" && answered)) {
    working = due = false;
    sayMode();
  }
  if (!ephemeral && id && roots.length < ROOTS_MAX) roots.push(id);
}

function isAboutUs(request) {
  return request?.kind === "extension-permission-access" || request?.kind === "extension-env-access";
}

// Orders. Each returns null, or the reason why nothing was done.

const ORDERS = {
  approve: (order, stands) => permit(order, stands, { kind: "approve-once" }),
  deny: (order, stands) => permit(order, stands, { kind: "reject", feedback: "Denied in Pilotlight" }),

  answer(order, stands) {
    const { requestId, result } = order;
    return carryOut(stands, responds, async () =>
      (await CALLS.answer(requestId, result)).success === true ? null : "gone",
    );
  },

  plan(order, stands) {
    // A plan may only be approved for continuing interactively, not for modes that act without asking.
    const { approved, selectedAction, feedback } = order.response ?? {};
    if (approved !== false && (approved !== true || selectedAction !== "interactive")) return "refused";
    const answer = approved ? { approved, selectedAction } : { approved, feedback: feedback && String(feedback) };
    return carryOut(stands, responds, async () =>
      (await CALLS.plan(order.requestId, answer)).success === true ? null : "gone",
    );
  },

  stop(order, stands) {
    return carryOut(stands, () => notWorking(order), async () => {
      // An abort alone leaves a form in the terminal, where it takes the user's keys.
      const forms = [...asked].filter(([, { type }]) => type === "elicitation.requested");
      const closed = forms.map(([id]) => CALLS.answer(id, { action: "cancel" }));
      await Promise.allSettled(closed);
      await CALLS.abort();
      return null;
    });
  },

  send(order, stands) {
    const { prompt } = order;
    if (typeof prompt !== "string" || !prompt) return "refused";
    return carryOut(stands, () => notIdle(order), async () => (await CALLS.send(prompt), null));
  },

  elevate(order, stands) {
    if (mayAnswer()) return null;
    if (elevated && isKept()) return "elsewhere";
    if (refused) return "refused";
    return carryOut(stands, () => notIdle(order), elevate);
  },

  activity: () => CALLS.activity(),

  // Waits for the next piece of the model's answer, and returns the size of the answer so far.
  async listen({ wait }) {
    const { cursor } = await CALLS.tail();
    const { events } = await CALLS.read(cursor, Math.min(wait, 30000));
    return { bytes: events[0]?.data?.totalResponseSizeBytes };
  },
};

// Acts on an order once its giver is known to be there still (`stands`) and Copilot says that there is no reason
// against it (`obstacle`). Any of the processes may be stopped at any time, and an answer that waited meanwhile says
// nothing about now: both are asked until both have answered just before, by the clock that stops while the machine
// sleeps and by the one that does not. Until `ready`, the giver is only asked whether to wait on.
async function carryOut(stands, obstacle, act, ready = () => true) {
  for (;;) {
    const isReady = await ready();
    const [asked, askedAt] = [performance.now(), Date.now()];
    if (!(await stands(isReady))) return "withdrawn";
    const why = await obstacle();
    if (why) return why;
    if (isReady && performance.now() - asked < FRESH && Math.abs(Date.now() - askedAt) < FRESH) return act();
  }
}

// Whether Copilot has drawn what it asks: its main thread, which draws, has hardly run or waited to run meanwhile. It
// takes seconds for a long text, and waits in between for other threads, which compare and colour it. A dialog that is
// answered before appears all the same, and takes the user's keys.
async function hasDrawn(isLong) {
  for (let calm = 0; calm < (isLong ? CALM : 1); calm++) {
    const before = drawingTimes(isLong);
    await new Promise((resolve) => setTimeout(resolve, DRAWING));
    const works = ([task, time]) => time - (before?.get(task) ?? 0) >= DRAWING / 2;
    if ([...(drawingTimes(isLong) ?? [])].some(works)) return false;
  }
  return true;
}

// How long Copilot's main thread, or each of its threads, has run or waited to run, in ms. Only Linux shows this.
function drawingTimes(ofAll) {
  const tasks = `/proc/${process.ppid}/task`;
  const time = (task) => {
    const [ran, waited] = readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ");
    return (Number(ran) + Number(waited)) / 1e6;
  };
  const main = attempt(() => time(process.ppid));
  const others = (ofAll && attempt(() => readdirSync(tasks))) || [];
  return main === null ? null : new Map([...others.map((task) => [task, attempt(() => time(task)) ?? 0]), [`${process.ppid}`, main]]);
}

// Returns once Copilot has answered.
async function responds() {
  await CALLS.pending();
  return null;
}

// Why an order is no longer valid: Copilot is asking about us; a later turn than the one named has begun (of a turn
// that was running when we joined, no event is known); or its deadline has passed.
function hasLapsed(order) {
  if (consenting) return "consenting";
  if (roots.length > 0 && !roots.includes(order.after)) return "changed";
  return isLate(order) ? "late" : null;
}

// Whether an order's deadline has passed, while it waited here or in Copilot. Pilotlight has given up on it then.
function isLate({ by }) {
  return Date.now() > by;
}

// Why the turn that an order names cannot be stopped.
async function notWorking(order) {
  // While the consent dialog is open, an abort would wait for it, and then hit whatever is running.
  const before = hasLapsed(order);
  if (before) return before;
  // Copilot's response arrives after all earlier events. If this process was stopped, these may include another turn.
  const { hasActiveWork } = await CALLS.activity();
  const meanwhile = hasLapsed(order);
  if (meanwhile) return meanwhile;
  // If the turn has ended, an abort would hit whatever begins next.
  return (roots.length > 0 ? working : hasActiveWork) ? null : "gone";
}

// Why the session is not waiting for its next prompt after the turn that an order names.
async function notIdle(order) {
  const begun = performance.now();
  for (;;) {
    const before = hasLapsed(order);
    if (before) return before;
    const [activity, pending] = await Promise.all([CALLS.activity(), CALLS.pending()]);
    if (!activity.hasActiveWork && pending.items.length === 0) return hasLapsed(order);
    if (working || pending.items.length > 0 || performance.now() - begun > ENDING) return hasLapsed(order) ?? "busy";
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}

async function permit(order, stands, result) {
  if (!mayAnswer()) return elevated && isKept() ? "elsewhere" : "not-elevated";
  const answer = async () => {
    try {
      return (await CALLS.permit(order.requestId, result)).success === true ? null : "gone";
    } catch (error) {
      if (!/not approved/.test(error?.message)) throw error;
      // The consent that was believed to be granted was not.
      elevated = byItself = false;
      sayConsent();
      return "not-elevated";
    }
  };
  const begun = performance.now();
  const isLong = () => large.has(order.requestId) && performance.now() - begun < PREPARED;
  return carryOut(stands, () => notOpen(order), answer, () => hasDrawn(isLong()));
}

// Why the request that an order names cannot be answered.
async function notOpen({ requestId, toolCallId, text }) {
  const open = (await CALLS.pending()).items.find((item) => item.requestId === requestId)?.request;
  if (!mayAnswer()) return "elsewhere"; // the folder was changed while the order waited
  if (!open) return "gone";
  if (isAboutUs(open)) return "refused";
  if (managed.has(requestId) || open.managedApprovalRequired) return "managed";
  if (open.toolCallId !== toolCallId || shown(open) !== text) return "changed";
  return drawingTimes() === null && isLarge(open) ? "large" : null;
}

function isLarge(request) {
  return JSON.stringify(request ?? null).length > LARGE;
}

// A hash that identifies a request as it is shown.
function shown(request) {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex");
}

async function elevate() {
  if (typeof session.connection?.sendRequest !== "function") return "unsupported";
  const asking = listening;
  consenting = true;
  given = false;
  say({ t: "consent", open: true });
  try {
    consentedIn = place();
    await CALLS.elevate();
    elevated = true;
    await CALLS.pending(); // by its answer, the events before it have arrived
    if (given) kept = asking;
    if (!isKept()) return "stranger";
    // New requests now arrive as events; those already open must be fetched.
    CALLS.pending().then(tellPending, () => {});
    return null;
  } catch (error) {
    refused = true;
    elevated = false;
    return String(error?.message ?? error);
  } finally {
    consenting = false;
    sayConsent();
  }
}

// Whether we may answer permission requests here, for this listener. Consent is for the place where it was given.
function mayAnswer() {
  return elevated && isKept() && consentedIn === place();
}

// Whether the listener is the one that a tool cannot have put in place of the user's, or that the user has consented to
// since.
function isKept() {
  return listening !== null && listening === kept;
}

function sayConsent() {
  say({ t: "consent", open: false, elevated: mayAnswer(), refused });
}

// What Copilot records a consent for: the session's repository, else its folder.
function place() {
  for (let above = cwd; ; above = dirname(above)) {
    if (existsSync(join(above, ".git"))) return above;
    if (dirname(above) === above) return cwd;
  }
}

// Called when the user has just sent a prompt or answered a request, so that a dialog would not interrupt typing. With a
// remembered consent there is none; if one appears all the same, this is not tried again.
async function elevateByItself() {
  if (!due || elevated || consenting || refused || !byItself || !authentic || !isKept() || !isRemembered()) return;
  byItself = false;
  const lists = (is, else_) => CALLS.pending().then(({ items }) => items.some(is), () => else_);
  if (await lists((item) => !closed.has(item.requestId), true)) return void (byItself = true);
  const late = setInterval(async () => {
    if (!(await lists((item) => isAboutUs(item.request), false)) || !consenting) return;
    clearInterval(late);
    say({ t: "consent", open: true, unexpected: true });
  }, LATE);
  await elevate();
  clearInterval(late);
}

// Called when a listener has let us in. The first prompt may have been sent before: with `-i`, even before we joined.
async function catchUp() {
  if (roots.length === 0 && !isInAutopilot()) {
    const works = await CALLS.activity().then(({ hasActiveWork }) => hasActiveWork, () => false);
    due ||= works;
  }
  await elevateByItself();
}

// Whether Copilot was started in autopilot, where it would refuse by itself; or whether that cannot be told.
function isInAutopilot() {
  try {
    return readFileSync(`/proc/${process.ppid}/cmdline`, "utf8").split("\0").some((argument) => /autopilot/.test(argument));
  } catch {
    return true;
  }
}

// Whether anything was logged since Copilot was started, by an earlier prompt than those that we have seen. Its log begins
// with a session's first prompt.
function wasPrompted() {
  const log = join(home(), "session-state", session.sessionId, "events.jsonl");
  return statSync(log, { throwIfNoEntry: false })?.mtimeMs >= copilotStarted;
}

function home() {
  return process.env.COPILOT_HOME || join(process.env.HOME || process.env.USERPROFILE || "", ".copilot");
}

// Whether the user has permanently allowed us to answer in this folder. Only Copilot writes this record.
function isRemembered() {
  const record = join(home(), "permissions-config.json");
  // Copilot reads its record when it starts, and does not see later changes by another terminal's Copilot.
  if (!(statSync(record, { throwIfNoEntry: false })?.mtimeMs < copilotStarted)) return false;
  const approvals = json(record)?.locations?.[place()]?.tool_approvals;
  const isOurs = (one) => one?.kind === "extension-permission-access" && one.extensionName === NAME;
  return Array.isArray(approvals) && approvals.some(isOurs);
}

// The connection to the listener: the tray, or a command if no tray is running.

let socket = null;
let authentic = false; // whether the listener has proved that it knows the key
let listener = null; // the identity of its socket
let listening = null; // and of its process, once it is let in
let tries = 0; // how often it has rejected us
let letInAt = 0; // when it last accepted us
let watched = [];

function say(message) {
  if (!authentic) return;
  let line = JSON.stringify(message);
  if (line.length > LINE_MAX) line = shortened(message);
  // Disconnect a listener that does not read.
  if (socket.writableLength > 4 * LINE_MAX) return socket.destroy();
  socket.write(`${line}\n`);
}

// The line of a message that is too large to send: permission requests without their longest texts, and if that is not
// enough, with only what is needed to deny them; of anything else, the ids.
function shortened(message) {
  const { t, type, agentId, data, items, mark } = message;
  if (!items && type !== "permission.requested") {
    return JSON.stringify({ t, type, agentId, data: { requestId: data?.requestId, tooLarge: true } });
  }
  for (const most of TEXTS_MAX) {
    const cut = (_, value) => (typeof value === "string" && value.length > most ? CUT : value);
    const line = JSON.stringify(message, cut);
    if (line.length <= LINE_MAX) return line;
  }
  const brief = (request) => ({ kind: request?.kind, toolCallId: request?.toolCallId, text: CUT });
  if (items) return JSON.stringify({ t, items: items.map((item) => ({ ...item, request: brief(item.request) })) });
  const { requestId, resolvedByHook, promptRequest } = data;
  return JSON.stringify({ t, type, agentId, mark, data: { requestId, resolvedByHook, promptRequest: brief(promptRequest) } });
}

// Connects to the preferred socket unless it is the current one. There is no polling: the watched folders report a new
// socket.
function look() {
  watchFolders();
  for (const folder of settings.folders) {
    const path = join(folder, SOCKET);
    const found = identity(path);
    if (!found) continue;
    if (found !== listener) {
      tries = 0;
      open(path, found);
    }
    return;
  }
}

// Watches each folder, or its nearest existing ancestor, and the parent of that, which alone reports that it is
// removed.
function watchFolders() {
  const nearest = (folder) => (existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder)));
  const both = settings.folders.map(nearest).flatMap((folder) => [folder, dirname(folder)]);
  const wanted = new Map(both.map((folder) => [folder, born(folder)]));
  const isWanted = ({ folder, at }) => wanted.get(folder) === at;
  watched.filter((one) => !isWanted(one)).forEach((one) => one.watcher.close());
  watched = watched.filter(isWanted);
  for (const [folder, at] of wanted) {
    if (watched.some((one) => one.folder === folder)) continue;
    try {
      const watcher = watch(folder, () => setImmediate(look));
      watcher.on("error", () => watcher.close());
      watched.push({ folder, at, watcher });
      // Check again for a socket created before the watch.
      setImmediate(look);
    } catch {
      // Without a watch, a later listener is not noticed.
    }
  }
}

function open(path, found) {
  socket?.destroy();
  authentic = false;
  listening = null;
  listener = found;
  const nonce = randomBytes(16).toString("hex");
  const mine = connect(path);
  socket = mine;
  const asks = new Map(); // those who wait to hear whether an order of this connection stands, by its id
  let text = "";
  mine.setEncoding("utf8");
  mine.on("connect", () => {
    const { COPILOT_CLI_BINARY_VERSION: cli } = process.env;
    const { pid, ppid } = process;
    const is = { elevated: false, consenting, refused };
    const hello = { t: "hello", v: VERSION, session: session.sessionId, pid, ppid, cli, cwd: process.cwd(), ...is, hash, nonce };
    mine.write(`${JSON.stringify(hello)}\n`);
  });
  mine.on("error", () => {});
  mine.on("close", () => {
    asks.forEach((answer) => answer(false));
    if (socket !== mine) return;
    if (authentic && Date.now() - letInAt > SETTLED) tries = 0;
    socket = null;
    authentic = false;
    listener = identity(path) === found ? found : null; // a dead listener leaves only the socket's name
    setImmediate(look);
    if (tries >= TRIES) return;
    // The listener may only have been busy, or stopped for a while.
    const again = () => !socket && listener === found && open(path, found);
    setTimeout(again, TRY_AFTER * 2 ** tries++).unref();
  });
  mine.on("data", (more) => {
    text += more;
    if (text.length > LINE_MAX) return mine.destroy();
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) {
      if (!take(line, mine, nonce, asks)) return mine.destroy();
    }
  });
}

// Handles a line from the listener. Returns whether to keep the connection.
function take(line, mine, nonce, asks) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return false;
  }
  if (!authentic) {
    const given = Buffer.from(String(message?.proof ?? ""), "hex");
    const right = proof("tray", `${nonce}:${process.pid}`);
    if (message?.t !== "welcome" || message.v !== VERSION) return false;
    if (given.length !== right.length || !timingSafeEqual(given, right)) return false;
    if (!isPilotlight(message.pid, nonce)) return false;
    listening = processOf(message.pid);
    if (listening === null) return false;
    // What a tool has started in place of the user's tray may ask for consent anew.
    if (!toolRan || message.isUsers === true) kept = listening;
    mine.write(`${JSON.stringify({ t: "proof", proof: proof("ext", message.nonce).toString("hex") })}\n`);
    authentic = true;
    letInAt = Date.now();
    byItself = byItself && message.byItself !== false;
    if (mayAnswer()) sayConsent();
    for (const question of asked.values()) say(question);
    CALLS.pending().then(tellPending, () => {});
    sayMode();
    void catchUp();
    return true;
  }
  const { t, id } = message ?? {};
  if (t === "stands") {
    asks.get(id)?.(message.stands === true);
    asks.delete(id);
    return true;
  }
  const order = Object.hasOwn(ORDERS, t) ? ORDERS[t] : () => "unknown";
  // Ids count for one connection: what belongs to an earlier one is neither asked nor reported over this one.
  const sayHere = (message) => socket === mine && say(message);
  const stands = (ready) =>
    new Promise((answer) => {
      if (socket !== mine) return answer(false);
      asks.set(id, answer);
      sayHere({ t: "ask", id, ready });
    });
  Promise.resolve()
    .then(() => (isLate(message) ? "late" : order(message, stands)))
    .then(
      (said) => sayHere(typeof said === "string" ? { t: "result", id, ok: false, error: said } : { ...said, t: "result", id, ok: true }),
      (error) => sayHere({ t: "result", id, ok: false, error: String(error?.message ?? error) }),
    );
  return true;
}

// Whether the listening process is Pilotlight and was not started by Copilot: a tool of the session may have read the
// key. The listener has a file open that is named after this connection and after the process that it sees as its peer:
// no other process can open it on its behalf, and a relay would be named as the peer instead of us. Only Linux shows
// this.
function isPilotlight(pid, nonce) {
  if (process.platform !== "linux") return true;
  try {
    const ours = fileOf(`/proc/${process.pid}/exe`);
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => link(`/proc/${pid}/fd/${fd}`));
    const seal = `/memfd:pilotlight-${nonce}-${process.pid} (deleted)`;
    // By the file itself: a path may be in another process's mounts, and a name may end in "(deleted)".
    const isSame = (kind) => link(`/proc/${pid}/ns/${kind}`) === link(`/proc/${process.pid}/ns/${kind}`);
    if (!open.includes(seal) || !isSame("mnt") || !isSame("user")) return false;
    if (fileOf(`/proc/${pid}/exe`) !== fileOf(settings.program)) return false;
    if (readFileSync(`/proc/${pid}/environ`).includes("COPILOT_AGENT_SESSION_ID=")) return false;
    for (let one = pid; one > 1; one = parentOf(one)) if (one === process.ppid || fileOf(`/proc/${one}/exe`) === ours) return false;
    return true;
  } catch {
    return false;
  }
}

// Identifies a file. Null where it cannot be read, as another user's program.
function fileOf(path) {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}

function parentOf(pid) {
  return Number(stat(pid)[1]);
}

// A process's start time, in ms. Where the system does not show it, our own, which is a moment later.
function startOf(pid) {
  try {
    const [uptime] = readFileSync("/proc/uptime", "utf8").split(" ");
    return Date.now() - (uptime - stat(pid)[19] / 100) * 1000;
  } catch {
    return Date.now() - process.uptime() * 1000;
  }
}

// Identifies a process, by its start, too: pids are reused. Null if it has ended. Other systems do not show the start.
function processOf(pid) {
  try {
    return process.platform === "linux" ? `${pid}:${stat(pid)[19]}` : "";
  } catch {
    return null;
  }
}

// The fields of Linux's `stat` of a process, from its state on.
function stat(pid) {
  const shown = readFileSync(`/proc/${pid}/stat`, "utf8");
  return shown.slice(shown.lastIndexOf(")") + 2).split(" ");
}

function link(path) {
  return attempt(() => readlinkSync(path));
}

function attempt(read) {
  try {
    return read();
  } catch {
    return null;
  }
}

// Reports the requests that were open before.
function tellPending({ items }) {
  const others = items.filter((item) => !isAboutUs(item.request));
  others.filter((item) => isLarge(item.request)).forEach((item) => large.add(item.requestId));
  say({ t: "pending", items: others.map((item) => ({ ...item, mark: shown(item.request) })) });
}

function proof(side, nonce) {
  return createHmac("sha256", key).update(`${side}:${nonce}:${session.sessionId}`).digest();
}

// Identifies a socket. Links and files of other users are refused. Inode numbers are reused, so the change time is
// included; for a socket, that is the time of its creation, since it does not change afterwards.
function identity(path) {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isSocket() && found.uid === process.getuid?.() ? `${found.dev}:${found.ino}:${found.ctimeMs}` : null;
}

function born(folder) {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}:${found.birthtimeMs}` : null;
}

function bytes(path) {
  return attempt(() => readFileSync(path));
}

function json(path) {
  return attempt(() => JSON.parse(readFileSync(path, "utf8")));
}

look();
