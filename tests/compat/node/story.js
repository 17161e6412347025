// Node's clients at work on a broker: `node story.js kafkajs|platformatic|kafkajs-secured BOOTSTRAP PREFIX`.
//
// PREFIX-in gets `records` records with each codec and is read by groups; what was counted is one JSON object on
// standard output. What goes wrong is thrown, and so ends the program with status 1.
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import kafkajs from 'kafkajs'
import { readFileSync } from 'node:fs'

const records = 200
const patienceMs = 60_000
const [client, bootstrap, prefix] = process.argv.slice(2)
const topic = `${prefix}-in`
const out = `${prefix}-out`
const counts = {}

function within(what, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing for ${patienceMs} ms: ${JSON.stringify(counts)}`)), patienceMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

const numbered = (n) => ({ key: `key-${n}`, value: `value-${n}`, headers: { n: `${n}` } })
const several = () => Array.from({ length: records }, (_, n) => numbered(n))

// How a client connects, from the environment: the same names as for Go's clients.
function kafkajsSecurity() {
  const { SSL_CA, SSL_KEY_STORE, SASL_MECHANISM, SASL_USERNAME, SASL_PASSWORD } = process.env
  const found = {}
  if (SSL_CA) {
    found.ssl = { ca: [readFileSync(SSL_CA)] }
    if (SSL_KEY_STORE) found.ssl.key = found.ssl.cert = readFileSync(SSL_KEY_STORE)
  }
  if (SASL_MECHANISM) {
    found.sasl = { mechanism: SASL_MECHANISM.toLowerCase(), username: SASL_USERNAME, password: SASL_PASSWORD }
  }
  return found
}

function kafkajsClient() {
  const settings = { clientId: prefix, brokers: [bootstrap], logLevel: kafkajs.logLevel.ERROR }
  return new kafkajs.Kafka({ ...settings, ...kafkajsSecurity() })
}

// Records, a group and transactions: what every secured listener has to carry.
async function kafkajsSecuredStory() {
  const kafka = kafkajsClient()
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }, { topic: out, numPartitions: 2 }], waitForLeaders: true })
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: several() })
  counts.produced = records
  counts.group = await kafkajsGroup(kafka)
  await kafkajsTransactions(kafka)
  await producer.disconnect()
  await admin.disconnect()
}

async function kafkajsStory() {
  const kafka = kafkajsClient()
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }, { topic: out, numPartitions: 2 }], waitForLeaders: true })
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  counts.produced = 0
  for (const compression of [kafkajs.CompressionTypes.None, kafkajs.CompressionTypes.GZIP]) {
    await producer.send({ topic, compression, acks: -1, messages: several() })
    counts.produced += records
  }
  await producer.send({ topic, messages: [{ key: 'key-0', value: null }] })
  counts.produced += 1
  counts.group = await kafkajsGroup(kafka)
  await kafkajsTransactions(kafka)
  await kafkajsAdmin(admin)
  await producer.disconnect()
  await admin.disconnect()
}

async function kafkajsGroup(kafka) {
  const seen = new Set()
  const consumers = [1, 2].map(() => kafka.consumer({ groupId: `${prefix}-group`, sessionTimeout: 10_000 }))
  await within('group', new Promise((resolve, reject) => {
    const eachMessage = async ({ partition, message }) => {
      seen.add(`${partition}/${message.offset}`)
      if (seen.size === counts.produced) resolve()
    }
    for (const consumer of consumers) {
      consumer.connect()
        .then(() => consumer.subscribe({ topics: [topic], fromBeginning: true }))
        .then(() => consumer.run({ eachMessage }))
        .catch(reject)
    }
  }))
  await Promise.all(consumers.map((consumer) => consumer.disconnect()))
  return seen.size
}

async function kafkajsTransactions(kafka) {
  const producer = kafka.producer({ transactionalId: prefix, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  counts.committed = 0
  for (let n = 0; n < 6; n++) {
    const transaction = await producer.transaction()
    await transaction.send({ topic: out, messages: [numbered(n)] })
    const partitions = [{ partition: 0, offset: `${n}` }]
    await transaction.sendOffsets({ consumerGroupId: `${prefix}-copies`, topics: [{ topic, partitions }] })
    if (n % 3 === 0) {
      await transaction.abort()
    } else {
      await transaction.commit()
      counts.committed += 1
    }
  }
  await producer.disconnect()
}

async function kafkajsAdmin(admin) {
  const [copied] = await admin.fetchOffsets({ groupId: `${prefix}-copies`, topics: [topic] })
  counts['committed offset'] = Number(copied.partitions.find((each) => each.partition === 0).offset)
  const ends = await admin.fetchTopicOffsets(topic)
  counts.ends = ends.reduce((sum, each) => sum + Number(each.high), 0)
  await admin.describeGroups([`${prefix}-group`])
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  await admin.describeConfigs({ includeSynonyms: true, resources: [{ type: 2, name: topic }] })
  const configEntries = [{ name: 'retention.ms', value: '600000' }]
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] })
  await admin.resetOffsets({ groupId: `${prefix}-group`, topic, earliest: true })
  await admin.fetchTopicOffsetsByTimestamp(topic, Date.now() - 100_000)
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] })
  await admin.deleteGroups([`${prefix}-group`])
  await admin.deleteTopics({ topics: [topic] })
}

async function platformaticStory() {
  const servers = { clientId: prefix, bootstrapBrokers: [bootstrap] }
  const admin = new Admin(servers)
  await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 })
  const producer = new Producer({ ...servers, serializers: stringSerializers, idempotent: true })
  counts.produced = 0
  for (const compression of ['none', 'gzip', 'snappy', 'lz4']) {
    await producer.send({ compression, acks: -1, messages: several().map((each) => ({ topic, ...each })) })
    counts.produced += records
  }
  await producer.close()
  for (const groupProtocol of ['classic', 'consumer']) {
    const groupId = `${prefix}-${groupProtocol}`
    const consumer = new Consumer({ ...servers, groupId, groupProtocol, deserializers: stringDeserializers })
    const stream = await consumer.consume({ autocommit: true, topics: [topic], mode: 'earliest' })
    const seen = new Set()
    await within(groupProtocol, (async () => {
      for await (const message of stream) {
        seen.add(`${message.partition}/${message.offset}`)
        if (seen.size === counts.produced) break
      }
    })())
    counts[`group ${groupProtocol}`] = seen.size
    await consumer.close(true)
  }
  await admin.deleteTopics({ topics: [topic] })
  await admin.close()
}

const stories = { kafkajs: kafkajsStory, platformatic: platformaticStory, 'kafkajs-secured': kafkajsSecuredStory }
await stories[client]()
console.log(JSON.stringify(counts))
process.exit(0)
