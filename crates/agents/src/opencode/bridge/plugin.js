import { spawn } from "node:child_process"

const PROGRAM = "@PROGRAM@"
// The longest request that is handed over, in characters, and the most that wait at once.
const LONGEST = 1 << 20
const MOST = 32
// A state that lasts is reported again after this time, in milliseconds.
const AGAIN = 60_000
// A hook that lives as long as this, in milliseconds, has handed its request over: the tray shows it, and not just that the
// session waits.
const HANDED_OVER = 300
// How long a report may take, in milliseconds: the next one waits for it.
const PATIENCE = 5000
// The longest title that is reported, in characters.
const TITLE_MAX = 300

export const Pilotlight = async ({ client, directory }) => {
  const parents = new Map()
  const titles = new Map()
  const reported = new Map()
  // The hooks that wait for an answer, by the ids of their requests.
  const waiting = new Map()
  let last = Promise.resolve()

  // What a sub-agent asks, its session asks.
  const rootOf = (session) => {
    for (let depth = 0; depth < 16 && parents.has(session); depth++) session = parents.get(session)
    return session
  }

  // One after another, so that none overtakes another.
  const after = (work) => {
    last = last.then(work).catch(() => {})
  }

  const report = (session, state) => {
    const before = reported.get(session)
    if (before?.state === state && Date.now() - before.at < AGAIN) return
    reported.set(session, { state, at: Date.now() })
    const words = ["report", "--agent=opencode", `--session=${session}`, `--state=${state}`, `--cwd=${directory}`]
    if (titles.has(session)) words.push(`--title=${titles.get(session)}`)
    const run = (done) => {
      const child = spawn(PROGRAM, words, { stdio: "ignore" })
      const limit = setTimeout(() => child.kill("SIGKILL"), PATIENCE)
      const ended = () => {
        clearTimeout(limit)
        done()
      }
      child.on("error", ended).on("exit", ended)
    }
    after(() => new Promise(run))
  }

  // Passes an answer on. This is all of opencode's client that is used. Returns the status of opencode's reply.
  const answer = async (kind, requestID, line) => {
    try {
      const said = JSON.parse(line)
      let body
      if (kind === "question" && Array.isArray(said.answers)) body = { answers: said.answers }
      if (kind === "permission" && said.reply === "once") body = { reply: "once" }
      if (kind === "permission" && said.reply === "reject") body = { reply: "reject", message: said.message }
      if (!body) return 0
      const headers = { "Content-Type": "application/json" }
      const sent = await client._client.post({ url: `/${kind}/{requestID}/reply`, path: { requestID }, body, headers })
      return sent.response?.status ?? 0
    } catch {
      return 0
    }
  }

  // Starts the hook, which hands the request to the tray, and waits for its answer. The session is reported to wait once
  // the hook has handed the request over, or has gone without.
  const ask = (kind, request) => {
    const entry = { session: rootOf(request.sessionID), asker: request.sessionID, isOver: false }
    const blocked = () => {
      if (!entry.isOver && !entry.isTold) report(entry.session, "blocked")
      entry.isTold = true
    }
    const asked = { v: 1, kind, session: entry.session, directory, title: titles.get(entry.session), request }
    const text = JSON.stringify(asked)
    const canAnswer = typeof client?._client?.post === "function"
    if (!canAnswer || text.length > LONGEST || waiting.size >= MOST || waiting.has(request.id)) return blocked()
    waiting.set(request.id, entry)
    const ended = () => {
      if (waiting.get(request.id) === entry) waiting.delete(request.id)
      blocked()
    }
    after(() => {
      if (entry.isOver) return
      const hook = spawn(PROGRAM, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
      entry.hook = hook
      hook.on("error", ended).on("exit", ended).unref()
      setTimeout(blocked, HANDED_OVER)
      hook.stdin.on("error", () => {})
      hook.stdout.on("error", () => {}).setEncoding("utf8")
      let said = ""
      hook.stdout.on("data", async (piece) => {
        said += piece
        const end = said.indexOf("\n")
        if (end < 0 || entry.isOver) return
        entry.isOver = true
        const status = await answer(kind, request.id, said.slice(0, end))
        hook.stdin.end(JSON.stringify({ status }) + "\n")
      })
      hook.stdin.write(text + "\n")
    })
  }

  // Lets hooks go whose requests were answered elsewhere, or are over.
  const letGo = (isOver) => {
    for (const [id, entry] of waiting) {
      if (entry.isOver || !isOver(id, entry)) continue
      entry.isOver = true
      waiting.delete(id)
      entry.hook?.stdin?.end()
    }
  }

  return {
    event: async ({ event: { type, properties } }) => {
      const info = properties?.info
      if (info?.parentID) parents.set(info.id, info.parentID)
      if (type === "session.updated" && info?.title && !/^(New|Child) session - /.test(info.title)) {
        // No process is started with a NUL or a very long text in its arguments, and half a character is no JSON.
        titles.set(info.id, [...`${info.title}`.replace(/[\p{Cc}\p{Cs}]+/gu, " ")].slice(0, TITLE_MAX).join(""))
      }
      const asker = properties?.sessionID
      if (!asker) return
      const session = rootOf(asker)
      if (type === "permission.asked" || type === "question.asked") {
        ask(type.split(".")[0], properties)
      } else if (["permission.replied", "question.replied", "question.rejected"].includes(type)) {
        letGo((id) => id === properties.requestID)
        report(session, "working")
      } else if (type === "session.status" && properties.status) {
        const isIdle = properties.status.type === "idle"
        if (isIdle) letGo((_, entry) => entry.asker === asker || entry.session === asker)
        if (session === asker) report(session, isIdle ? "idle" : "working")
      }
    },
    dispose: async () => letGo(() => true),
  }
}
