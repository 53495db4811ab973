// MA-CC's dumbbell in ns-3: the reference that docs/fidelity.md compares the simulator with.
//
// --flows senders, access links of 100 Mbps and --access ms, a core of --rate Mbps and --delay ms
// with --queue packets and --loss at its receiving end, segments of 1448 bytes, delayed ACKs.
// Every queue but the core's is a FIFO of 1000 packets. After --warmup s it prints one line of
// key=value: goodput, time means of the smoothed RTT and of the core's queue, share of packets
// dropped by that queue, and Jain's index of the flows.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <vector>

using namespace ns3;

static std::vector<double> rtt;
static std::vector<uint64_t> bytesBefore;
static uint64_t droppedBefore = 0;
static uint64_t receivedBefore = 0;
static double rttSum = 0.0;
static uint64_t rttCount = 0;
static double queueSum = 0.0;
static uint64_t queueCount = 0;

static void
OnRtt(uint32_t flow, Time, Time now)
{
    rtt[flow] = now.GetSeconds();
}

static void
TraceRtt(uint32_t node, uint32_t flow)
{
    Config::ConnectWithoutContext("/NodeList/" + std::to_string(node) +
                                      "/$ns3::TcpL4Protocol/SocketList/0/RTT",
                                  MakeBoundCallback(&OnRtt, flow));
}

static void
Sample(Ptr<QueueDisc> disc)
{
    queueSum += disc->GetNPackets();
    ++queueCount;
    for (double value : rtt)
    {
        rttSum += value;
        ++rttCount;
    }
    Simulator::Schedule(MilliSeconds(100), &Sample, disc);
}

static uint64_t
Received(const ApplicationContainer& sinks, uint32_t i)
{
    return DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
}

static void
Begin(Ptr<QueueDisc> disc, const ApplicationContainer* sinks)
{
    for (uint32_t i = 0; i < sinks->GetN(); ++i)
    {
        bytesBefore.push_back(Received(*sinks, i));
    }
    droppedBefore = disc->GetStats().nTotalDroppedPackets;
    receivedBefore = disc->GetStats().nTotalReceivedPackets;
    Sample(disc);
}

int
main(int argc, char* argv[])
{
    std::string cc = "TcpCubic";
    std::string discipline = "droptail";
    double rate = 30.0;
    double delay = 100.0;
    double access = 20.0;
    double loss = 0.0003;
    double duration = 60.0;
    double warmup = 0.0;
    uint32_t flows = 3;
    uint32_t queue = 385;
    uint32_t mark = 65;
    uint32_t seed = 1;
    uint32_t minRto = 1000;
    CommandLine cmd;
    cmd.AddValue("cc", "TcpNewReno, TcpLinuxReno, TcpCubic, TcpBbr, TcpVegas ...", cc);
    cmd.AddValue("queue-disc", "droptail, red, codel, pie or mark", discipline);
    cmd.AddValue("rate", "core rate (Mbps)", rate);
    cmd.AddValue("delay", "core delay (ms)", delay);
    cmd.AddValue("access", "delay of each access link (ms)", access);
    cmd.AddValue("loss", "packet error rate of the core", loss);
    cmd.AddValue("duration", "simulated time (s)", duration);
    cmd.AddValue("warmup", "time before measuring (s)", warmup);
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("queue", "core queue (packets)", queue);
    cmd.AddValue("mark", "queue from which packets are marked, where queue-disc is mark", mark);
    cmd.AddValue("seed", "run number", seed);
    cmd.AddValue("min-rto", "smallest retransmission timeout (ms)", minRto);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    if (cc == "TcpWestwoodPlus")
    {
        // ns-3.37 has it as a variant of Westwood.
        cc = "TcpWestwood";
        Config::SetDefault("ns3::TcpWestwood::ProtocolType", StringValue("WestwoodPlus"));
    }
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + cc));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8388608));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8388608));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(minRto)));
    if (discipline == "mark")
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }

    NodeContainer senders, receivers, routers;
    senders.Create(flows);
    receivers.Create(flows);
    routers.Create(2);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    line.SetChannelAttribute("Delay", TimeValue(MicroSeconds(uint64_t(access * 1000))));
    line.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    PointToPointHelper core;
    core.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e6))));
    core.SetChannelAttribute("Delay", TimeValue(MicroSeconds(uint64_t(delay * 1000))));
    core.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer trunk = core.Install(routers.Get(0), routers.Get(1));
    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(loss);
    trunk.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));

    TrafficControlHelper plain;
    plain.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000p"));
    TrafficControlHelper control;
    QueueSizeValue size(QueueSize(QueueSizeUnit::PACKETS, queue));
    DataRateValue speed(DataRate(uint64_t(rate * 1e6)));
    if (discipline == "red")
    {
        // Without "Wait" the distance between drops is as in Linux and in Floyd and Jacobson.
        control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", size, "MinTh", DoubleValue(96),
                                 "MaxTh", DoubleValue(288), "LInterm", DoubleValue(10),
                                 "QW", DoubleValue(0.002), "LinkBandwidth", speed,
                                 "MeanPktSize", UintegerValue(1500), "Wait", BooleanValue(false));
    }
    else if (discipline == "mark")
    {
        // DCTCP's switch: mark by the queue as it is, from one threshold on.
        control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", size, "MinTh", DoubleValue(mark),
                                 "MaxTh", DoubleValue(mark), "QW", DoubleValue(1.0),
                                 "LinkBandwidth", speed, "MeanPktSize", UintegerValue(1500),
                                 "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false));
    }
    else if (discipline == "codel")
    {
        control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", size);
    }
    else if (discipline == "pie")
    {
        control.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", size);
    }
    else
    {
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", size);
    }
    Ptr<QueueDisc> disc = control.Install(trunk.Get(0)).Get(0);
    plain.Install(trunk.Get(1));

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(trunk);
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        NetDeviceContainer left = line.Install(senders.Get(i), routers.Get(0));
        NetDeviceContainer right = line.Install(routers.Get(1), receivers.Get(i));
        plain.Install(left);
        plain.Install(right);
        addresses.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        addresses.Assign(left);
        addresses.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        InetSocketAddress target(addresses.Assign(right).GetAddress(1), 5000);
        BulkSendHelper source("ns3::TcpSocketFactory", target);
        ApplicationContainer app = source.Install(senders.Get(i));
        double at = start->GetValue(0.0, 0.5);
        app.Start(Seconds(at));
        rtt.push_back(0.0);
        Simulator::Schedule(Seconds(at + 0.001), &TraceRtt, senders.Get(i)->GetId(), i);
        PacketSinkHelper sink("ns3::TcpSocketFactory", target);
        sinks.Add(sink.Install(receivers.Get(i)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(warmup), &Begin, disc, &sinks);
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    double sum = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < flows; ++i)
    {
        double share = (Received(sinks, i) - bytesBefore[i]) * 8.0 / (duration - warmup) / 1e6;
        sum += share;
        squares += share * share;
    }
    const QueueDisc::Stats& stats = disc->GetStats();
    std::cout << "goodput_mbps=" << sum << " rtt_ms=" << rttSum / rttCount * 1e3
              << " drop_rate="
              << double(stats.nTotalDroppedPackets - droppedBefore) /
                     double(stats.nTotalReceivedPackets - receivedBefore)
              << " queue_packets=" << queueSum / queueCount
              << " jain=" << sum * sum / (flows * squares) << std::endl;
    Simulator::Destroy();
    return 0;
}
