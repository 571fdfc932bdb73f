'use strict'
// Preloaded into a test suite (NODE_OPTIONS=--require): its requests over http go through the proxy at
// SUITE_PROXY (HOST:PORT), in absolute form (RFC 9112 section 3.2.2). Requests over https, over sockets
// of the suite's own and to AF_UNIX sockets stay as they are.

const http = require('node:http')
const { syncBuiltinESMExports } = require('node:module')
const { urlToHttpOptions } = require('node:url')

const proxy = new URL(`http://${process.env.SUITE_PROXY}`)

function merge (input, options, callback) {
  if (typeof input === 'string' || input instanceof URL) {
    input = urlToHttpOptions(new URL(input))
  } else {
    callback = options
    options = {}
  }
  if (typeof options === 'function') {
    callback = options
    options = {}
  }
  return [{ ...input, ...options }, callback]
}

function authority (options) {
  const host = options.hostname || options.host || 'localhost'
  const port = Number(options.port || options.defaultPort || 80)
  const literal = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  return port === 80 ? literal : `${literal}:${port}`
}

// The fields with Host, which would otherwise be the proxy's.
function withHost (headers, host) {
  if (Array.isArray(headers)) {
    const names = Array.isArray(headers[0])
      ? headers.map(pair => pair[0])
      : headers.filter((_, at) => at % 2 === 0)
    if (names.some(name => String(name).toLowerCase() === 'host')) return headers
    return Array.isArray(headers[0]) ? [['Host', host], ...headers] : ['Host', host, ...headers]
  }
  const named = Object.keys(headers || {}).some(name => name.toLowerCase() === 'host')
  return named ? headers : { Host: host, ...headers }
}

function lead (options) {
  const direct = options.socketPath || options.createConnection || options.method === 'CONNECT' ||
    (options.protocol && options.protocol !== 'http:') ||
    (options.agent && options.agent.protocol === 'https:')
  if (direct) return options
  const host = authority(options)
  const path = options.path || '/'
  return {
    ...options,
    host: proxy.hostname,
    hostname: proxy.hostname,
    port: proxy.port,
    path: `http://${host}${path === '*' ? '' : path}`,
    headers: withHost(options.headers, host)
  }
}

const request = http.request
http.request = function (...words) {
  const [options, callback] = merge(...words)
  return request(lead(options), callback)
}
http.get = function (...words) {
  const sent = http.request(...words)
  sent.end()
  return sent
}
syncBuiltinESMExports()
